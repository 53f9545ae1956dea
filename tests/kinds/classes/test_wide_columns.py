from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io.tables import read
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.wide_columns import choose_columns, find_grid, label_texts, wide_hint

LABELS = {"ann": ["a", "b", "a"], "bob": ["b", "b", "a"]}


def texts(**columns):
    return {name: label_texts(values) for name, values in (columns | LABELS).items()}


def test_a_column_of_its_own_values_is_no_worker():
    found = choose_columns(texts(id=[1, 2, 3], text=["x y", "z", "u"], link=["x", "x", "x"]))
    assert found.task == "id"
    assert found.workers == ("ann", "bob")
    assert found.left_out == ("text", "link")


def test_a_measure_that_shares_few_values_is_no_worker():
    columns = {"id": "123456", "n_words": ["1", "17", "23", "8", "2", "31"]}
    columns |= {"ann": "112221", "bob": "121121"}
    found = choose_columns({name: label_texts(list(values)) for name, values in columns.items()})
    assert found.workers == ("ann", "bob")


@pytest.mark.parametrize("name", ["label", "gold", "truth", "true_label", "category", "answer"])
def test_a_truth_shares_values_and_is_no_worker(name):
    assert choose_columns(texts(id=[1, 2, 3], **{name: ["a", "b", "a"]})).left_out == (name,)


def test_the_first_column_has_the_tasks_if_its_values_are_all_different():
    assert choose_columns(texts(file=["x", "y", "z"])).task == "file"
    assert choose_columns(texts(file=["x", "y", "x"])).task is None
    assert choose_columns(texts(file=["x", "y", None])).task is None
    assert choose_columns(LABELS | texts(), workers=["ann", "bob"]).task is None


def test_two_candidates_for_the_task_are_an_error():
    with pytest.raises(DataError, match="'doc_id', 'image_id' could each be the task"):
        choose_columns(texts(doc_id=[1, 2, 3], image_id=[1, 2, 3]))


def test_a_long_table_does_not_look_wide():
    long = {"item": ["1", "1"], "worker": ["a", "b"], "x": ["u", "v"], "y": ["v", "u"]}
    assert wide_hint(list(long), {name: pa.array(values) for name, values in long.items()}) is None


def test_mixed_values_are_compared_as_text():
    assert label_texts([1, "1", None, ""]).to_pylist() == ["1", "1", None, None]
    assert label_texts(["1.0", "", "2.0"]).to_pylist() == ["1", None, "2"]
    assert label_texts(["1.0", "1.5"]).to_pylist() == ["1.0", "1.5"]


# ------------------------------------------------------------------------------------------ frames

WIDE = {
    "id": [7, 8, 9],
    "text": ["x", "y", "z"],
    "tags": [["u"], ["v"], []],
    "ann": [1, 0, None],
    "bob": [1, 1, 0],
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
@pytest.mark.parametrize(
    "options", [{"wide": True}, {"worker_columns": ["ann", "bob"], "task": "id"}]
)
def test_a_wide_frame(make, options):
    labels = CrowdLabels.from_frame(make(WIDE), **options)
    assert labels.tasks.tolist() == [7, 8, 9]
    assert labels.workers.tolist() == ["ann", "bob"]
    assert labels.classes.tolist() == [0, 1]
    assert labels.n_annotations == 5
    assert "'text', 'tags'" in labels.notes[0]


def test_options_of_a_wide_frame():
    labels = CrowdLabels.from_frame(WIDE, wide=True, classes=[0, 1, 2], abstain=0)
    assert (labels.n_classes, labels.n_annotations) == (3, 3)
    with pytest.raises(ParameterError, match="worker='ann' has no meaning in a wide frame"):
        CrowdLabels.from_frame(WIDE, wide=True, worker="ann")
    with pytest.raises(DataError, match="no column 'ID' for the task"):
        CrowdLabels.from_frame(WIDE, wide=True, task="ID")
    with pytest.raises(DataError, match="no column 'ben' for a worker"):
        CrowdLabels.from_frame(WIDE, worker_columns=["ann", "ben"])
    with pytest.raises(DataError, match="tasks of the matrix must be distinct"):
        CrowdLabels.from_frame(WIDE | {"id": [7, 7, 8]}, wide=True)


def test_rows_without_a_column_of_tasks_have_the_index():
    frame = pd.DataFrame({"ann": ["a", "b"], "bob": ["a", "a"]}, index=["u", "v"])
    assert CrowdLabels.from_frame(frame, wide=True).tasks.tolist() == ["u", "v"]
    assert CrowdLabels.from_frame(pl.DataFrame(frame), wide=True).tasks.tolist() == [0, 1]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_a_wide_frame_is_refused_with_the_remedy(make):
    with pytest.raises(DataError) as error:
        CrowdLabels.from_frame(make(WIDE))
    assert "it looks like a wide table" in str(error.value)
    assert "wide=True" in str(error.value)
    assert "worker_columns=['ann', 'bob']" in str(error.value)


RATINGS = {
    "rater1": [5, 1, 4, 5, 4, 4, 2, 3, 5, 4],
    "rater2": [5, 1, 1, 4, 4, 3, 4, 4, 2, 4],
    "rater3": [2, 1, 1, 1, 5, 4, 4, 4, 5, 1],
}


@pytest.mark.parametrize("rows", [3, 4, 10])
@pytest.mark.parametrize("start", [0, 1])
def test_row_numbers_that_are_ratings_too_are_tasks(start, rows):
    columns = {"essay": list(range(start, start + rows))}
    columns |= {name: ratings[:rows] for name, ratings in RATINGS.items()}
    found = choose_columns({name: label_texts(values) for name, values in columns.items()})
    assert found.task == "essay"
    assert found.workers == tuple(RATINGS)


def test_distinct_ids_with_values_that_no_worker_uses_are_tasks():
    columns = dict(zip(("ann", "bob", "cem"), RATINGS.values(), strict=True))
    columns = {"essay": [3, 1, 4, 7, 5, 9, 2, 6, 8, 10], **columns}
    found = choose_columns({name: label_texts(values) for name, values in columns.items()})
    assert found.task == "essay"
    assert found.workers == ("ann", "bob", "cem")


@pytest.mark.parametrize(
    "first", [["a", "b", "c"], ["1", "3", "2"], ["a", "b", "c", "d", "a"]], ids=str
)
def test_a_first_worker_who_gives_different_labels_is_a_worker(first):
    others = [[first[0], first[1], first[1], *first[3:]]] * 2
    given = zip(("ann", "bob", "cem"), [first, *others], strict=True)
    columns = {name: pa.array(values) for name, values in given}
    assert choose_columns(columns).workers == ("ann", "bob", "cem")


def test_row_numbers_of_a_wide_file_are_tasks(tmp_path):
    path = tmp_path / "essays.csv"
    pd.DataFrame({"essay": range(10), **RATINGS}).to_csv(path, index=False)
    assert read(path).workers.tolist() == list(RATINGS)
    assert read(path, wide=True).workers.tolist() == list(RATINGS)


QUESTIONS = ("effusion", "nodule", "size_mm")


def names(form, workers=("R1", "R2", "R3")):
    return [form.format(w=worker, q=question) for worker in workers for question in QUESTIONS]


@pytest.mark.parametrize(
    "form",
    ["{w}_{q}", "{q}_{w}", "{w} {q}", "{w}.{q}", "{w}-{q}", "{q} ({w})", "{q} [{w}]", "{w}: {q}"],
)
@pytest.mark.parametrize(
    "workers", [("R1", "R2", "R3"), ("Reader1", "Reader2"), ("ann", "bob"), ("rater 1", "rater 2")]
)
def test_questions_of_workers(form, workers):
    grid = find_grid(["case", *names(form, workers), "comment"])
    assert grid is not None
    assert sorted(map(len, grid.values())) in ([len(workers)] * 3, [3] * len(workers))


@pytest.mark.parametrize(
    "columns",
    [
        ["rater_1", "rater_2", "rater_3"],
        ["expert_1", "expert_2", "crowd_1", "crowd_2"],
        ["novice_1", "novice_2", "expert_1", "expert_2"],
        ["gpt_4", "gpt_5", "claude_3", "claude_4"],
        ["ann smith", "bob jones", "cem kaya"],
        ["ann_k", "bob_k", "cem_w"],
        ["A", "B", "C"],
        ["w1", "w2", "w10"],
        ["worker-1-2020", "worker-2-2020"],
    ],
)
def test_workers(columns):
    assert find_grid(["id", "text", *columns]) is None


def table(form="{w}_{q}"):
    values = {name: ["0", "1", "1", "0", "1", "0"] for name in names(form)}
    return {"case": list("abcdef"), **values}


@pytest.mark.parametrize("kind", ["labels", "sets", "numbers", "texts"])
def test_they_are_refused_in_files(tmp_path, kind):
    lines = [list(table()), *zip(*table().values(), strict=True)]
    path = tmp_path / "a.csv"
    path.write_text("".join(",".join(line) + "\n" for line in lines))
    with pytest.raises(DataError, match=r"answers of 3 workers to 3 questions.*'R3_effusion'"):
        wc.read(path, wide=True, type=kind)
    read = wc.read(path, type=kind, worker_columns=["R1_nodule", "R2_nodule", "R3_nodule"])
    assert read.n_workers == 3
    assert wc.read(path, type=kind, worker_columns=names("{w}_{q}")).n_workers == 9


def test_they_are_refused_in_frames():
    with pytest.raises(DataError, match="3 workers to 3 questions"):
        wc.CrowdLabels.from_frame(table(), wide=True)


def test_a_question_beside_measures_is_read():
    """Columns of other content than labels do not make a second question."""
    columns = {f"worker_{j}_label": list("abababab") for j in (1, 2)}
    columns |= {f"worker_{j}_time": [f"{j}{i}.5" for i in range(8)] for j in (1, 2)}
    read = wc.CrowdLabels.from_frame({"id": list("12345678"), **columns}, wide=True)
    assert read.workers.tolist() == ["worker_1_label", "worker_2_label"]
