from __future__ import annotations

import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wisecrowd as wc
from wisecrowd.aggregation import DawidSkene
from wisecrowd.core.arrow import as_arrow, unmasked
from wisecrowd.core.exceptions import DataError, WisecrowdWarning
from wisecrowd.core.ids import encoding
from wisecrowd.core.ids.encoding import Encoded, IdColumn, encode, lookup
from wisecrowd.io.tables import write_table


def decoded(encoded: Encoded) -> list:
    values = [*encoded.vocabulary.tolist(), None]
    return [values[code] for code in encoded.codes.tolist()]


# ---------------------------------------------------------------------------------------- one type


@pytest.mark.parametrize(
    "values",
    [
        ["b", "a", "b"],
        [3, 1, 3],
        [True, False, True],
        [2**40, -(2**40), 0],
        [1.5, 2.5, 1.5],
        ["żółć", "日本", "a"],
        [str(uuid.UUID(int=i)) for i in (7, 3, 7)],
        ["nan", "NA", "None"],
        ["007", "7", "07"],
    ],
)
def test_values_come_back_and_the_vocabulary_is_sorted(values):
    encoded = encode(values, "task")
    assert decoded(encoded) == values
    assert encoded.vocabulary.tolist() == sorted(set(values))
    assert encoded.codes.dtype == np.int32


def test_whole_floats_are_integers():
    encoded = encode([2.0, np.nan, 1.0], "label")
    assert encoded.vocabulary.tolist() == [1, 2]
    assert encoded.vocabulary.dtype == np.int64
    assert encoded.codes.tolist() == [1, -1, 0]


def test_canonical_integers_as_text_sort_by_value():
    assert encode(["10", "9", "1"], "task").vocabulary.tolist() == ["1", "9", "10"]
    assert encode(["10", "9", "01"], "task").vocabulary.tolist() == ["01", "10", "9"]


@pytest.mark.parametrize(
    "values", [["a", "", "b"], ["a", "  ", "b"], ["a", None, "b"], np.array(["a", None, "b"])]
)
def test_empty_text_and_none_are_missing(values):
    assert encode(values, "label").codes.tolist() == [0, -1, 1]


def test_text_keeps_its_own_spaces():
    assert encode([" a", "a"], "label").vocabulary.tolist() == [" a", "a"]


def test_nothing_is_an_empty_vocabulary():
    encoded = encode([], "task")
    assert len(encoded.codes) == len(encoded.vocabulary) == 0


def test_encoded_columns_pass():
    encoded = encode(["a"], "task")
    assert encode(encoded, "task") is encoded


@pytest.mark.parametrize(
    ("values", "seen"),
    [
        ([1, "a"], "int in row 1, str in row 2"),
        (["a", None, True], "bool in row 3, str in row 1"),
        ([2**60, 2.5], "float in row 2, int in row 1"),
    ],
)
def test_mixed_types_are_refused_with_rows(values, seen):
    with pytest.raises(DataError, match="mix types") as error:
        encode(values, "label")
    assert seen in str(error.value)
    assert "convert the whole column to one type" in str(error.value)


def test_values_that_cannot_be_ids_are_refused():
    with pytest.raises(
        DataError, match=r"types UUID that cannot serve as ids; convert them to text"
    ):
        encode([uuid.uuid4()], "task")
    with pytest.raises(DataError, match=r"label column holds lists or records, first in row 2"):
        encode(pa.array([None, [1]]), "label")
    with pytest.raises(DataError, match="infinity"):
        encode([1.0, np.inf], "label")
    with pytest.raises(DataError, match="2 dimensions"):
        encode(np.zeros((2, 2)), "label")


def test_integers_among_floats_are_numbers():
    assert encode([1, 2.5, None], "label").vocabulary.tolist() == [1.0, 2.5]
    assert encode([1, 2.0], "label").vocabulary.tolist() == [1, 2]


def test_masked_entries_are_missing():
    values = np.ma.masked_array([1, 2, 3], mask=[False, True, False])
    assert unmasked(values).tolist() == [1, None, 3]
    assert encode(values, "label").codes.tolist() == [0, -1, 1]


# -------------------------------------------------------------------------------- frame libraries


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["b", None, "a", "b"], dtype=object),
        pd.Series(["b", None, "a", "b"], dtype="str"),
        pd.Series(["b", None, "a", "b"], dtype="category"),
        pd.Series(["b", None, "a", "b"], dtype="string[pyarrow]"),
        pl.Series(["b", None, "a", "b"]),
        pl.Series(["b", None, "a", "b"], dtype=pl.Categorical),
        pl.Series(["b", None, "a", "b"], dtype=pl.Enum(["unused", "b", "a"])),
        pa.array(["b", None, "a", "b"]),
        pa.array(["b", None, "a", "b"], pa.large_string()),
        pa.array(["b", None, "a", "b"], pa.string_view()),
        pa.array(["b", None, "a", "b"]).dictionary_encode(),
        pa.chunked_array([["b", None], ["a", "b"]]),
        pa.chunked_array([["b", None], ["a", "b"]]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 0], pa.uint8()), ["b", "a"]),
        pa.DictionaryArray.from_arrays(pa.array([0, 2, 1, 0]), ["b", "a", None]),
        pa.DictionaryArray.from_arrays(
            pa.array([0, None, 1, 0]), pa.array(["b", "a"], pa.string_view())
        ),
    ],
    ids=lambda c: (
        f"{type(c).__module__.split('.')[0]}-{getattr(c, 'dtype', getattr(c, 'type', ''))}"
    ),
)
def test_every_kind_of_text_column_gives_the_same(column):
    arrow = column.to_arrow() if isinstance(column, pl.Series) else column
    if isinstance(column, pd.Series):
        arrow = pa.Array.from_pandas(column)
    encoded = encode(arrow, "label")
    assert encoded.codes.tolist() == [1, -1, 0, 1]
    assert encoded.vocabulary.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([2, None, 1], dtype="Int64"),
        pd.Series([2, None, 1], dtype=float),
        pl.Series([2, None, 1]),
        pa.array([2, None, 1], pa.uint8()),
        pa.array([2, None, 1]).dictionary_encode(),
    ],
)
def test_integers_with_gaps(column):
    arrow = column.to_arrow() if isinstance(column, pl.Series) else as_arrow_of(column)
    encoded = encode(arrow, "label")
    assert encoded.codes.tolist() == [1, -1, 0]
    assert encoded.vocabulary.tolist() == [1, 2]


def as_arrow_of(column):
    return pa.Array.from_pandas(column) if isinstance(column, pd.Series) else column


def test_booleans_with_gaps():
    assert encode(pa.array([True, None, False]), "label").codes.tolist() == [1, -1, 0]


def test_categories_that_are_equal_numbers_are_one():
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array([1.0, 1.0]))
    assert encode(column, "label").codes.tolist() == [0, 0, 0]


def test_unsigned_integers_beyond_the_signed_ones():
    assert encode(np.array([2**64 - 1, 0], np.uint64), "task").vocabulary.tolist() == [0, 2**64 - 1]


# ----------------------------------------------------------------------------------- many chunks


def texts_in_chunks(*chunks):
    column = IdColumn("task")
    for chunk in chunks:
        column.add(pa.array(chunk))
    assert len(column) == sum(map(len, chunks))
    return column.finish()


@pytest.fixture
def eager(monkeypatch):
    """Look for numbered ids in tiny columns too."""
    monkeypatch.setattr(encoding, "_TRY_NUMBERED", 1)
    monkeypatch.setattr(encoding, "_TEXTS", 2)


@pytest.mark.parametrize(
    "chunks",
    [
        (["t1", "t2"], ["t10", "t3"]),  # unpadded
        (["t01", "t02"], ["t10", "t03"]),  # padded
        (["t10", "t11"], ["t7"]),  # one width at first
        (["t01", "t02"], ["t3", "t4"]),  # 03 and 3 would be one number: text again
        (["t1", "t2"], ["t02"]),
        (["t1", "t2"], ["x"], ["t3"]),
        (["a", "a", "b"], ["b", "c"]),
        (["1", "2"], ["10"]),
        (["1", "2"], ["", "5"]),
        (["1", "2"], [None, "5"]),
    ],
)
def test_chunks_give_what_one_array_gives(eager, chunks):
    values = [value for chunk in chunks for value in chunk]
    encoded = texts_in_chunks(*chunks)
    plain = sorted({v for v in values if v})
    if all(v.isdigit() and str(int(v)) == v for v in plain):
        plain.sort(key=int)
    assert decoded(encoded) == [v or None for v in values]
    assert encoded.vocabulary.tolist() == plain


@given(st.lists(st.text(alphabet="ab01é", max_size=12), min_size=1), st.data())
def test_any_text_in_any_chunks(values, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=3)))
    column = IdColumn("task")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "_TRY_NUMBERED", 1)
        for begin, end in zip([0, *cuts], [*cuts, len(values)], strict=True):
            column.add(pa.array(values[begin:end], pa.string()))
        encoded = column.finish()
    assert decoded(encoded) == [v or None for v in values]
    numeric = all(v == "0" or (v.isdigit() and v[0] != "0") for v in values if v)
    expected = sorted({v for v in values if v}, key=int if numeric else None)
    assert encoded.vocabulary.tolist() == expected


def test_mostly_distinct_text_is_kept_whole():
    texts = [f"{i:x}-{i * 7919 % 5003}-{'x' * (i % 3)}" for i in range(5000)]
    encoded = texts_in_chunks(texts[:2500], texts[2500:])
    assert decoded(encoded) == texts
    assert encoded.vocabulary.tolist() == sorted(set(texts))


def test_a_column_learns_new_labels_on_the_way():
    chunks = [["cat", "dog"] * 10, ["dog", "cat"], ["cow", "cat"], ["a longer label"], ["cow", ""]]
    encoded = texts_in_chunks(*chunks)
    assert decoded(encoded) == [value or None for chunk in chunks for value in chunk]
    assert encoded.vocabulary.tolist() == ["a longer label", "cat", "cow", "dog"]


def test_chunks_of_integers_and_floats_are_numbers():
    column = IdColumn("label")
    column.add(pa.array([1, 2]))
    column.add(pa.array([1.0, None]))
    assert column.finish().codes.tolist() == [0, 1, 0, -1]
    mixed = IdColumn("label")
    mixed.add(pa.array([1]))
    mixed.add(pa.array(["a"]))
    with pytest.raises(DataError, match=r"mix types \(int64, large_string\) between parts"):
        mixed.finish()


def test_the_input_is_left_alone():
    values = np.array([5, 3, 5], dtype=np.int32)
    encode(values, "task")
    assert values.tolist() == [5, 3, 5]
    column = pa.array(["b", "a"]).dictionary_encode()
    encode(column, "task")
    assert column.to_pylist() == ["b", "a"]


# ----------------------------------------------------------------------------------------- lookup


def test_lookup_needs_the_same_type():
    vocabulary = np.array([0, 1])
    assert lookup([1, 5, True, 1.0, "1"], vocabulary).tolist() == [1, -1, -1, -1, -1]
    assert lookup(vocabulary, vocabulary).tolist() == [0, 1]
    assert lookup([], vocabulary).tolist() == []


def test_as_arrow_turns_numpy_text_into_arrow_text():
    assert as_arrow(np.array(["a", "b"]), "task").to_pylist() == ["a", "b"]


TEXTS = ["b", "a", "", "Zoë", "b", "a longer id of more than fifteen bytes"]


@pytest.fixture
def compact(monkeypatch):
    """Let vocabularies of three texts and more be compact."""
    monkeypatch.setattr(encoding, "MANY", 3)


def crowd():
    """Return columns of 30 tasks, numbered in one way or another."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(30), 4)
    return {
        "task": [f"t-{i}" for i in task],
        "worker": [f"w{j}" for j in np.tile(np.arange(4), 30)],
        "label": np.array(["x", "y"])[rng.integers(2, size=120)].tolist(),
    }


@pytest.mark.parametrize(
    "texts", [TEXTS, [f"t{i:05d}" for i in range(1200)], [f"t{i}" for i in range(1200)]]
)
def test_encoding_is_the_same(texts, compact, monkeypatch):
    found = encode(texts, "task")
    assert found.vocabulary.dtype.kind == "T"
    monkeypatch.undo()
    usual = encode(texts, "task")
    assert usual.vocabulary.dtype == object
    assert found.vocabulary.tolist() == usual.vocabulary.tolist()
    assert {type(one) for one in found.vocabulary.tolist()} == {str}
    np.testing.assert_array_equal(found.codes, usual.codes)
    again = encode(found.vocabulary, "task")
    assert again.codes.tolist() == list(range(len(found.vocabulary)))


def test_a_fit_answers_the_same(compact, monkeypatch, tmp_path):
    def answers(name):
        labels = wc.CrowdLabels.from_frame(pa.table(crowd()))
        fit = DawidSkene(max_iter=3).fit(labels)
        table = fit.main_columns()
        write_table(tmp_path / f"{name}.csv", table)
        write_table(tmp_path / f"{name}.parquet", table)
        fit.save(tmp_path / name)
        loaded = wc.load(tmp_path / name)
        files = [(tmp_path / f"{name}.{end}").read_bytes() for end in ("csv", "parquet")]
        frames = [labels.to_frame(library) for library in ("pandas", "polars", "pyarrow")]
        return labels, loaded.tasks_.tolist(), files, frames

    labels, loaded, files, frames = answers("compact")
    assert labels.tasks.dtype.kind == "T"
    part = labels[[4, 2]]
    monkeypatch.undo()
    usual, usual_loaded, usual_files, usual_frames = answers("usual")
    assert usual.tasks.dtype == object
    assert loaded == usual_loaded == usual.tasks.tolist()
    assert files == usual_files
    for one, two in zip(frames, usual_frames, strict=True):
        assert one.equals(two)
    assert part.tasks.tolist() == usual[[4, 2]].tasks.tolist()


def test_lookalikes_are_found(compact):
    tasks = ["t1", "t2", "t3", "t1 "]
    with pytest.warns(WisecrowdWarning, match=r"'t1' and 't1 '"):
        wc.CrowdLabels.from_arrays(tasks, ["ann", "bob"] * 2, ["x", "y", "x", "y"])
