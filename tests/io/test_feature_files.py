from __future__ import annotations

import json
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.features import as_features, is_mapped
from wisecrowd.core.messages.option_spelling import shell_spelling
from wisecrowd.io import feature_files
from wisecrowd.io.feature_files import ids_of_rows, read_features, read_ids


def test_an_array_comes_back_as_it_is(tmp_path):
    X = np.random.default_rng(0).normal(size=(4, 3, 2, 2)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    table = read_features(tmp_path / "x.npy")
    np.testing.assert_array_equal(table.X, X)
    assert table.tasks is None


def test_a_large_array_stays_in_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr(feature_files, "MAPPED_FROM", 100)
    np.save(tmp_path / "x.npy", np.arange(200, dtype=np.uint8).reshape(50, 4))
    table = read_features(tmp_path / "x.npy")
    assert is_mapped(table.X)
    assert table.X.dtype == np.uint8
    assert not is_mapped(as_features(table.X))  # floats for methods that need all at once
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-1])
    with pytest.raises(DataError, match=r"x\.npy is not a plain \.npy array"):
        read_features(tmp_path / "x.npy")


def test_a_table_has_ids_and_numbers(tmp_path):
    (tmp_path / "x.csv").write_text("a,task,b\n1,t10,2.5\n 3 ,t2,4\n")
    table = read_features(tmp_path / "x.csv")
    assert table.tasks.tolist() == ["t10", "t2"]
    np.testing.assert_array_equal(table.X, [[1.0, 2.5], [3.0, 4.0]])
    assert table.note == ""


def test_a_pickle_is_never_read(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="not a plain"):
        read_features(tmp_path / "x.npy")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("task,a\nt,1\nu,red\n", r"'a' of .*: row 1 \(counted from 0\) holds 'red'"),
        ("task\nt\n", "one column only"),
        ("task,a,b\nt,1,2\nu,,4\n", r"'a' of .* is empty in row 1"),
        ("task,a,b\nt,1,2\nu,3,nan\n", r"contains NaN in row 1, of 'u', column 1"),
        ("task,a\nt,1\nu,2\nt,3\n", r"gives the id 't' to rows 0 and 2"),
        ("task,a\nt,1\n,2\n", r"has no id in row 1"),
    ],
)
def test_says_what_is_no_feature(tmp_path, text, match):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(DataError, match=match):
        read_features(tmp_path / "x.csv")


@pytest.mark.parametrize("content", [b"", b"not numpy", b"\x93NUMPY\x01\x00\xff\xff"])
def test_a_broken_array_is_one_sentence(tmp_path, content):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(DataError, match=r"x\.npy"):
        read_features(tmp_path / "x.npy")


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match="No such file"):
        read_features(tmp_path / "none.npy")


def test_ids_from_a_table_and_from_an_array(tmp_path):
    (tmp_path / "ids.csv").write_text("task,note\n7,x\n007,y\n")
    np.save(tmp_path / "ids.npy", np.array([3, 1]))
    assert read_ids(tmp_path / "ids.csv").tolist() == ["7", "007"]
    (tmp_path / "ids.txt").write_text("t 1\nt2\n")
    assert read_ids(tmp_path / "ids.npy").tolist() == ["3", "1"]
    assert read_ids(tmp_path / "ids.txt").tolist() == ["t 1", "t2"]


def test_features_without_a_header_do_not_lose_their_first_row(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("0.5,1.25\n0.1,0.2\n")
    with pytest.raises(DataError, match=r"x\.csv has no header: its first row, '0\.5', '1\.25'"):
        read_features(path)
    path.write_text("0,1\n0.1,0.2\n")  # as a frame without names is written
    assert read_features(path).X.tolist() == [[0.1, 0.2]]


def test_numbered_features_are_not_a_wide_table_of_labels(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("task,0,1\na,1,2\nb,2,4\n")
    found = read_features(path)
    assert (found.X.tolist(), found.tasks.tolist()) == ([[1.0, 2.0], [2.0, 4.0]], ["a", "b"])
    assert read_ids(path).tolist() == ["a", "b"]


# ------------------------------------------------------------------------------ archives of arrays


def test_an_archive_of_one_array_or_of_features_and_ids(tmp_path):
    X = np.arange(6.0).reshape(3, 2)
    np.savez(tmp_path / "one.npz", X)
    np.testing.assert_array_equal(read_features(tmp_path / "one.npz").X, X)
    for ids in (np.array(["a", "b", "ü"]), np.array([b"a", b"b", "ü".encode()])):
        np.savez_compressed(tmp_path / "named.npz", y=np.arange(3), X=X, ids=ids)
        table = read_features(tmp_path / "named.npz")
        np.testing.assert_array_equal(table.X, X)
        assert table.tasks.tolist() == ["a", "b", "ü"]
        assert table.note.endswith("named.npz: X; not used: y")
    np.savez(tmp_path / "numbers.npz", embeddings=X, task_id=[7, 8, 9])
    assert read_features(tmp_path / "numbers.npz").tasks.tolist() == ["7", "8", "9"]


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_sparse_matrices_stay_sparse(tmp_path, form):
    X = sparse.random_array((6, 4), density=0.4, rng=np.random.default_rng(0)).asformat(form)
    sparse.save_npz(tmp_path / "x.npz", X)
    found = read_features(tmp_path / "x.npz")
    assert found.X.format == "csr"
    np.testing.assert_array_equal(found.X.toarray(), X.toarray())


def test_a_sparse_matrix_may_have_ids_beside_it(tmp_path):
    X = sparse.csr_array(np.eye(2))
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
    np.savez(tmp_path / "x.npz", format="csr", ids=["b", "a"], **parts)
    assert read_features(tmp_path / "x.npz").tasks.tolist() == ["b", "a"]


def hollow(**changes):
    X = sparse.csr_array(np.eye(3))
    parts = {"format": "csr", "data": X.data, "indices": X.indices, "indptr": X.indptr}
    return {**parts, "shape": np.array(X.shape), **changes}


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({"a": np.ones((2, 2)), "b": np.ones((2, 2))}, r"not clear \(there are a, b\)"),
        ({"X": np.ones(3)}, r"shape \(3,\)"),
        ({"X": np.array([["a", "b"]])}, "not of numbers"),
        ({"X": np.ones((2, 2)) * 1j}, "not of numbers"),
        ({"X": np.ones((0, 2))}, "no features"),
        ({"X": np.array([[1.0], [np.inf]])}, "infinity in row 1, column 0"),
        ({"X": np.ones((2, 1)), "ids": ["a", "a"]}, "gives the id 'a' to rows 0 and 1"),
        ({"X": np.ones((2, 1)), "ids": ["a"]}, "1 ids and the features have 2 rows"),
        ({"X": np.ones((2, 1)), "ids": [0.5, 1.0]}, "one text or integer per row"),
        ({"X": np.ones((2, 1)), "ids": np.array([b"a", b"\xff"])}, "not UTF-8"),
        (hollow(indices=np.array([0, 1, 7])), "damaged sparse matrix"),
        (hollow(indptr=np.array([0, 1])), "damaged sparse matrix"),
        (hollow(format="xyz"), "format 'xyz'"),
        (hollow(shape=np.array([3])), "damaged sparse matrix"),
        (hollow(data=np.array([1.0, np.nan, 1.0])), "NaN in row 1, column 1"),
    ],
)
def test_an_archive_that_is_no_features_is_one_sentence(tmp_path, arrays, match):
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(DataError, match=match):
        read_features(tmp_path / "x.npz")


def test_a_claimed_size_takes_no_memory(tmp_path):
    huge = {"format": "coo", "data": np.ones(1), "row": np.zeros(1, int), "col": np.zeros(1, int)}
    np.savez(tmp_path / "x.npz", **huge, shape=np.array([2**50, 3]))
    with pytest.raises(DataError, match="over the limit"):
        read_features(tmp_path / "x.npz")


def test_archives_with_pickles_or_damage_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, X=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataError, match="'X' is not a plain"):
        read_features(path)
    np.savez(path, X=np.ones((50, 50)))
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(DataError, match="damaged or cut off zip file"):
        read_features(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", b"nonsense")
    with pytest.raises(DataError, match="not a plain"):
        read_features(path)


def test_arrays_have_neither_columns_nor_texts(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 2)))
    with pytest.raises(ParameterError, match="embed is for texts"):
        read_features(tmp_path / "x.npy", embed=len)
    with pytest.raises(ParameterError, match="columns are for tables"):
        read_features(tmp_path / "x.npy", columns=["a"])


# --------------------------------------------------------------------------------- lists in tables


def vectors(tmp_path, kind, **columns):
    """Write a table and return its path; ``kind`` is a suffix, or "folder"."""
    table = pa.table(columns)
    if kind == "parquet":
        pq.write_table(table, tmp_path / "x.parquet")
    elif kind == "jsonl":
        lines = [json.dumps(row) + "\n" for row in table.to_pylist()]
        (tmp_path / "x.jsonl").write_text("".join(lines))
    else:
        return hugging_face_folder(tmp_path / "data", [table])
    return tmp_path / f"x.{kind}"


def hugging_face_folder(folder, tables):
    """Write what ``Dataset.save_to_disk`` writes."""
    folder.mkdir(parents=True)
    names = [f"data-{k:05}-of-{len(tables):05}.arrow" for k in range(len(tables))]
    for name, table in zip(names, tables, strict=True):
        with pa.ipc.new_stream(folder / name, table.schema) as writer:
            writer.write_table(table)
    state = {"_data_files": [{"filename": name} for name in names], "_split": "train"}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")
    return folder


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "folder"])
def test_a_column_of_lists_is_the_features(tmp_path, kind):
    path = vectors(
        tmp_path, kind, id=["a", "b"], text=["x", "y"], embedding=[[1.0, 2.0], [3.0, 4.5]],
        label=[0, 1],
    )  # fmt: skip
    table = read_features(path)
    assert (table.X.tolist(), table.tasks.tolist()) == ([[1, 2], [3, 4.5]], ["a", "b"])
    assert table.note.endswith(": embedding; not used: text, label")
    assert read_features(path, columns=["label"]).X.tolist() == [[0], [1]]
    with pytest.raises(ParameterError, match=r"no column 'embeding' \(did you mean 'embedding'"):
        read_features(path, columns=["embeding"])
    with pytest.raises(DataError, match=r"'text' of .* row 0 .* holds 'x'.*columns"):
        read_features(path, columns=["text"])


def test_lists_of_lists_and_of_fixed_size_keep_shape_and_type(tmp_path):
    flat = pa.array(np.arange(6), pa.float32())
    path = vectors(tmp_path, "parquet", X=pa.FixedSizeListArray.from_arrays(flat, 3))
    found = read_features(path).X
    assert (found.shape, found.dtype) == ((2, 3), np.float32)
    path = vectors(tmp_path, "parquet", image=[[[1, 2], [3, 4]], [[5, 6], [7, 8]]], id=[1, 2])
    assert read_features(path).X.shape == (2, 2, 2)


@pytest.mark.parametrize(
    ("lists", "match"),
    [
        ([[1.0, 2.0], [3.0]], "a list of 1 numbers in row 1"),
        ([[1.0, 2.0], [3.0, None]], "empty in row 1"),
        ([[1.0, 2.0], None], "empty in row 1"),
        ([["a"], ["b"]], "lists of something else than numbers"),
    ],
)
def test_bad_lists_are_one_sentence(tmp_path, lists, match):
    path = vectors(tmp_path, "parquet", id=[1, 2], v=pa.array(lists))
    with pytest.raises(DataError, match=match):
        read_features(path)


# ------------------------------------------------------------------------- Hugging Face's data sets


def labelled(values, **columns):
    described = {"info": {"features": {"label": {"_type": "ClassLabel", "names": ["no", "yes"]}}}}
    table = pa.table({"label": [0] * len(values), "a": values, **columns})
    return table.replace_schema_metadata({"huggingface": json.dumps(described)})


def test_a_folder_is_read_in_order_without_caches_and_classes(tmp_path):
    folder = hugging_face_folder(tmp_path / "data", [labelled([1.0, 2.0]), labelled([3.0])])
    (folder / "cache-0123.arrow").write_bytes((folder / "data-00000-of-00002.arrow").read_bytes())
    table = read_features(folder)
    assert (table.X.tolist(), table.tasks) == ([[1], [2], [3]], None)
    assert table.note.endswith(": a; not used: label")  # the truth is not a feature
    (folder / "data-00001-of-00002.arrow").unlink()
    with pytest.raises(DataError, match="lacks 1 of its"):
        read_features(folder)


def test_a_folder_of_splits_a_damaged_file_and_a_path_to_elsewhere(tmp_path):
    folder = hugging_face_folder(tmp_path / "all" / "train", [labelled([1.0])])
    (tmp_path / "all" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(DataError, match=r"splits \(train, test\).*such as .*train"):
        read_features(tmp_path / "all")
    (folder / "state.json").write_text('{"_data_files": [{"filename": "../../secret.arrow"}]}')
    with pytest.raises(DataError, match="lacks 1"):
        read_features(folder)
    (folder / "state.json").write_text("{}")
    (folder / "data-00000-of-00001.arrow").write_bytes(b"damaged")
    with pytest.raises(DataError, match="damaged or cut off"):
        read_features(folder)


class DataSet:
    """Like a Dataset of Hugging Face's library."""

    column_names = ("id", "a")

    def with_format(self, kind):
        assert kind == "arrow"
        return self

    def __getitem__(self, rows):
        return pa.table({"id": ["x", "y"], "a": [1.0, 2.0]})

    def __len__(self):
        return 2


def test_a_data_set_in_python_is_read_as_a_table():
    table = wc.read_features(DataSet())
    assert (table.X.tolist(), table.tasks.tolist()) == ([[1], [2]], ["x", "y"])
    with pytest.raises(DataError, match="read_features"):
        wc.learning.Raykar().fit(DataSet(), np.zeros((2, 2), int))


# ------------------------------------------------------------------------------------------- texts


def lengths(texts):
    """Embed a text as its number of letters and of spaces."""
    return np.array([[len(text), text.count(" ")] for text in texts])


def test_lines_of_text_are_embedded(tmp_path):
    path = tmp_path / "s.txt"
    path.write_bytes("\ufeffa b\r\n\nthe\u2028end\n".encode())  # a row is a line, also an empty one
    assert read_features(path, embed=lengths).X.tolist() == [[3, 1], [0, 0], [7, 0]]
    with pytest.raises(DataError, match="give embed=FUNCTION"):
        read_features(path)
    with shell_spelling(), pytest.raises(DataError, match="give --embed package"):
        read_features(path)
    path.write_text("")
    with pytest.raises(DataError, match="empty"):
        read_features(path, embed=lengths)


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "folder"])
def test_a_column_of_text_is_embedded(tmp_path, kind):
    path = vectors(tmp_path, kind, id=["a", "b"], author=["x", "y"], Text=["one", "and two"])
    table = read_features(path, embed=lengths)
    assert (table.X.tolist(), table.tasks.tolist()) == ([[3, 0], [7, 1]], ["a", "b"])
    assert read_features(path, embed=lengths, columns=["author"]).X.tolist() == [[1, 0], [1, 0]]


def test_the_column_of_text_is_named_if_there_are_several(tmp_path):
    path = vectors(tmp_path, "parquet", id=[1, 2], question=["a", "b"], answer=["c", None])
    with pytest.raises(DataError, match=r"not clear: question, answer may be it"):
        read_features(path, embed=lengths)
    with pytest.raises(DataError, match=r"'answer' of .* nothing in row 1"):
        read_features(path, embed=lengths, columns=["answer"])
    with pytest.raises(ParameterError, match="one column"):
        read_features(path, embed=lengths, columns=["question", "answer"])
    (tmp_path / "s.csv").write_text("sentence\none\ntwo words\n")
    assert read_features(tmp_path / "s.csv", embed=lengths).X.tolist() == [[3, 0], [9, 1]]


@pytest.mark.parametrize(
    ("embed", "match"),
    [
        (lambda texts: 1 / 0, "failed on the 2 texts of .*ZeroDivisionError"),
        (lambda texts: lengths(texts)[:1], r"shape \(1, 2\) for the 2 texts"),
        (lambda texts: np.ones(2), r"shape \(2,\)"),
        (lambda texts: texts, "not numbers"),
        (lambda texts: np.full((2, 2), np.nan), "NaN in row 0"),
    ],
)
def test_an_embedding_that_is_none_is_one_sentence(tmp_path, embed, match):
    (tmp_path / "s.txt").write_text("a\nb\n")
    with pytest.raises(DataError, match=match):
        read_features(tmp_path / "s.txt", embed=embed)


def test_an_embedding_may_be_sparse_or_a_tensor(tmp_path):
    torch = pytest.importorskip("torch")
    (tmp_path / "s.txt").write_text("a\nb\n")
    made = {
        "sparse": lambda texts: sparse.csr_matrix(np.eye(2)),
        "tensor": lambda texts: torch.eye(2, requires_grad=True),
    }
    for embed in made.values():
        X = read_features(tmp_path / "s.txt", embed=embed).X
        np.testing.assert_array_equal(X.toarray() if sparse.issparse(X) else X, np.eye(2))


# --------------------------------------------------------------------------------------------- ids


def test_ids_of_a_file_come_first_and_must_fit(tmp_path):
    np.savez(tmp_path / "x.npz", X=np.ones((2, 1)), ids=["a", "b"])
    table = read_features(tmp_path / "x.npz")
    assert ids_of_rows(table, None).tolist() == ["a", "b"]
    ids = tmp_path / "ids.txt"
    ids.write_text("c\nd\n")
    assert ids_of_rows(table, str(ids)).tolist() == ["c", "d"]
    for text, match in (("c\n", "1 ids"), ("c\nc\n", "rows 0 and 1")):
        ids.write_text(text)
        with pytest.raises(DataError, match=match):
            ids_of_rows(table, str(ids))
