from __future__ import annotations

import json
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.option_spelling import shell_spelling
from wisecrowd.io.inspection import inspect
from wisecrowd.io.layout import is_data

NUMBERS = "100,12,2\n100,13,2\n101,12,1\n101,13,2\n"
TEXTS = "img1,ann,cat\nimg1,bob,dog\nimg2,ann,cat\nimg2,bob,cat\n"
NAMES = ["task", "worker", "label"]


@pytest.fixture
def written(tmp_path):
    def write(content: str, name: str = "a.csv"):
        path = tmp_path / name
        path.write_text(content, newline="")
        return path

    return write


# --------------------------------------------------------------------------------------- no header


@pytest.mark.parametrize("content", [NUMBERS, TEXTS, TEXTS.replace(",", "\t"), "img1,12,2\n" * 2])
@pytest.mark.parametrize("format", ["auto", "csv"])
def test_a_row_of_data_is_not_taken_for_the_header(written, content, format):
    path = written(content)
    with pytest.raises(DataError) as error:
        wc.read(path, format)
    assert f"{path} has no header" in str(error.value)
    assert "give header=False, columns=['task', 'worker', 'label']" in str(error.value)
    with (
        shell_spelling(),
        pytest.raises(DataError, match="--no-header --columns task,worker,label"),
    ):
        inspect(path, format)


def test_numbers_may_be_meant_as_workers(written):
    path = written("0,1,2\n1,0,1\n0,0,1\n")
    with pytest.raises(DataError, match="if the numbers name workers, give wide=True"):
        wc.read(path)
    assert wc.read(path, wide=True).workers.tolist() == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("content", "name"), [(NUMBERS, "a.csv"), (TEXTS.replace(",", "\t"), "a.tsv"), (TEXTS, "a.txt")]
)
def test_the_columns_of_a_file_without_a_header_are_named(written, content, name):
    labels = wc.read(written(content, name), header=False, columns=NAMES)
    with_header = wc.read(written("task,worker,label\n" + content.replace("\t", ","), "b.csv"))
    assert labels.n_annotations == 4
    assert {k: v.tolist() for k, v in labels.to_dict().items()} == {
        k: v.tolist() for k, v in with_header.to_dict().items()
    }


def test_named_columns_go_through_the_same_recognition(written):
    path = written("cat,7,ann\ndog,7,bob\n")
    labels = wc.read(path, header=False, columns=["category", "item_id", "rater"])
    assert labels.to_dict()["label"].tolist() == ["cat", "dog"]
    labels = wc.read(path, header=False, columns=["a", "b", "c"], task="b", worker="c", label="a")
    assert labels.workers.tolist() == ["ann", "bob"]


def test_a_first_row_that_is_longer_than_a_block_counts(written):
    rows = "".join(f"t{i % 1000},w{i % 7},{i % 2}\n" for i in range(200_000))
    labels = wc.read(written(rows), header=False, columns=NAMES, duplicates="keep")
    assert labels.n_annotations == 200_000


@pytest.mark.parametrize("names", [["task", "worker"], [*NAMES, "x"]])
def test_the_wrong_number_of_names(written, names):
    path = written(NUMBERS)
    with pytest.raises(DataError) as error:
        wc.read(path, header=False, columns=names)
    assert f"{path} has 3 columns ('100', '12', '2')" in str(error.value)
    assert f"columns names {len(names)}" in str(error.value)


def test_a_bad_row_of_a_file_without_a_header(written):
    with pytest.raises(DataError, match=r"row 3 has 2 fields where the first row has 3"):
        wc.read(written("1,2,3\n1,3,3\n1,2\n"), header=False, columns=NAMES)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"header": False}, r"need names: give columns=\["),
        ({"columns": NAMES}, "give header=False"),
        ({"header": False, "columns": ["task", "task", "label"]}, "names 'task' twice"),
        ({"header": False, "columns": "task"}, "give a list of names"),
        ({"header": False, "columns": NAMES, "format": "parquet"}, "goes with csv and tsv"),
        ({"header": False, "columns": NAMES, "format": "mturk"}, "not with mturk"),
        ({"wide": True, "format": "mturk"}, "not with mturk"),
        ({"worker_columns": "ann"}, "give a list of column names"),
        ({"worker_columns": ["ann", "ann"]}, "names 'ann' twice"),
        ({"worker_columns": []}, "names no column"),
        ({"wide": True, "worker": "ann"}, "has no meaning"),
    ],
)
def test_options_that_do_not_go_together(written, options, words):
    with pytest.raises(ParameterError, match=words):
        wc.read(written(NUMBERS), **options)


@pytest.mark.parametrize(
    "header",
    [
        ["picture", "who", "what"],
        ["task", "12", "2"],
        ["id", "1", "2"],
        ["label", "label", "x"],
        ["item_id", "ann", "cat"],
    ],
)
def test_headers_are_not_taken_for_data(header):
    assert not is_data(header, [["img1", "img2"], ["ann", "label"], ["cat", "dog"]])


# -------------------------------------------------------------------------------------------- wide

WIDE = {
    "id": ["1", "2", "3", "4"],
    "text": ["hello", "bad", "nice", "so so"],
    "ann1": ["pos", "neg", "pos", ""],
    "ann2": ["neg", "neg", "pos", "pos"],
    "cem": ["pos", "neg", "", "neg"],
    "gold": ["pos", "neg", "pos", "neg"],
    "length": ["5", "3", "4", "5"],
}
CELLS = {
    ("1", "ann1", "pos"), ("2", "ann1", "neg"), ("3", "ann1", "pos"), ("1", "ann2", "neg"),
    ("2", "ann2", "neg"), ("3", "ann2", "pos"), ("4", "ann2", "pos"), ("1", "cem", "pos"),
    ("2", "cem", "neg"), ("4", "cem", "neg"),
}  # fmt: skip


def cells(labels):
    return set(zip(*(labels.to_dict()[name].tolist() for name in NAMES), strict=True))


def _lines(table, separator=","):
    rows = [list(table), *zip(*table.values(), strict=True)]
    return "".join(separator.join(row) + "\n" for row in rows)


@pytest.fixture(params=["a.csv", "a.tsv", "a.jsonl", "a.parquet"])
def wide_file(request, tmp_path):
    path = tmp_path / request.param
    gaps = {name: [value or None for value in values] for name, values in WIDE.items()}
    if path.suffix == ".parquet":
        pq.write_table(pa.table(gaps), path)
    elif path.suffix == ".jsonl":
        rows = [dict(zip(gaps, row, strict=True)) for row in zip(*gaps.values(), strict=True)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        path.write_text(_lines(WIDE, "\t" if path.suffix == ".tsv" else ","))
    return path


@pytest.mark.parametrize(
    "options",
    [{"wide": True}, {"format": "wide"}, {"worker_columns": ["ann1", "ann2", "cem"]},
     {"format": "wide", "worker_columns": ["ann1", "ann2", "cem"], "task": "id"}],
)  # fmt: skip
def test_workers_of_a_wide_table(wide_file, options):
    labels = wc.read(wide_file, **options)
    assert cells(labels) == CELLS
    note = next(note for note in labels.notes if "not read" in note)
    assert "'text', 'gold', 'length'" in note


def test_a_wide_table_is_recognised_and_how_to_say_so(wide_file):
    with pytest.raises(DataError) as error:
        wc.read(wide_file)
    assert f"{wide_file} is not read: it looks like a wide table" in str(error.value)
    assert "wide=True" in str(error.value)
    assert "worker_columns=['ann1', 'ann2', 'cem']" in str(error.value)
    with (
        shell_spelling(),
        pytest.raises(DataError, match=r"--wide, or .* --worker-columns ann1,ann2"),
    ):
        inspect(wide_file)


def test_a_wide_table_is_inspected(wide_file):
    seen = inspect(wide_file, wide=True)
    assert (seen.format, seen.n_labels, seen.n_workers, seen.n_tasks) == ("wide", 10, 3, 4)
    assert seen.columns["task"] == "id"


def test_a_wide_table_without_a_header(written):
    text = _lines(WIDE).partition("\n")[2]
    labels = wc.read(written(text), wide=True, header=False, columns=list(WIDE))
    assert cells(labels) == CELLS


def test_the_named_format_of_a_wide_table(written):
    path = written(_lines(WIDE, "\t"), "a.txt")
    assert cells(wc.read(path, "tsv", wide=True)) == CELLS


def test_two_columns_of_one_name_in_a_wide_table(written):
    with pytest.raises(DataError, match="2 columns named 'ann'"):
        wc.read(written("id,ann,ann\n1,x,y\n2,y,x\n"), wide=True)


def test_a_worker_column_that_is_not_there(wide_file):
    with pytest.raises(DataError, match=r"no column 'ann3' for a worker \(did you mean 'ann"):
        wc.read(wide_file, worker_columns=["ann1", "ann3"])
    with pytest.raises(DataError, match="'id' is named for the task and for a worker"):
        wc.read(wide_file, worker_columns=["id", "ann1"], task="id")


def test_no_column_shares_a_value(written):
    with pytest.raises(DataError, match=r"No two columns share a label.*'a', 'b'"):
        wc.read(written("id,a,b\n1,x,y\n2,x,y\n"), wide=True)
    labels = wc.read(written("id,a,b\n1,x,y\n2,x,y\n"), worker_columns=["a", "b"])
    assert labels.workers.tolist() == ["a", "b"]


def test_a_series_of_workers_beside_a_column_without_a_usual_name(written):
    labels = wc.read(written("file,annotator_1,annotator_2\nx.png,cat,dog\ny.png,cat,cat\n"))
    assert labels.workers.tolist() == ["annotator_1", "annotator_2"]
    assert labels.tasks.tolist() == ["x.png", "y.png"]


def test_a_wide_table_of_many_workers_takes_seconds(written):
    names = [f"x{i}" for i in range(5000)]
    rows = "".join(
        f"{r}," + ",".join("ab"[(i + r) % 2] for i in range(5000)) + "\n" for r in (0, 1)
    )
    path = written("id," + ",".join(names) + "\n" + rows)
    start = time.process_time()
    labels = wc.read(path, wide=True)
    assert (labels.n_workers, labels.n_annotations) == (5000, 10_000)
    assert time.process_time() - start < 20


def test_names_are_quoted_as_a_shell_needs_it(written):
    path = written("id,text,Ann Lee,Bob\n1,hi,x,y\n2,ho,y,y\n")
    with shell_spelling(), pytest.raises(DataError, match="--worker-columns 'Ann Lee,Bob'"):
        wc.read(path)


def test_a_task_that_a_wide_table_does_not_have(wide_file):
    with pytest.raises(DataError, match=r"no column 'ids' for the task; did you mean 'id'"):
        wc.read(wide_file, wide=True, task="ids")
