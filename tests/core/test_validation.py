from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wisecrowd import CrowdLabels
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdWarning
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.texts.container import CrowdTexts

COLUMNS = {"task": ["t2", "t1", "t1"], "worker": ["b", "b", "a"], "label": ["x", "y", "x"]}
EXPECTED = [("t1", "a", "x"), ("t1", "b", "y"), ("t2", "b", "x")]


def long_table(labels):
    table = labels.to_dict()
    return list(zip(*(table[role].tolist() for role in ("task", "worker", "label")), strict=True))


def same(a, b):
    assert long_table(a) == long_table(b)
    for name in ("task", "worker", "label", "tasks", "workers", "classes"):
        assert getattr(a, name).tolist() == getattr(b, name).tolist()
        assert getattr(a, name).dtype == getattr(b, name).dtype


# ---------------------------------------------------------------------------------------- frames


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table, dict])
@pytest.mark.parametrize("kind", [CrowdLabels, CrowdSets, CrowdTexts])
def test_a_repeated_header_is_refused(library, kind):
    names = {"task": "task", "worker": "worker", "label": "text" if kind is CrowdTexts else "label"}
    columns = {names[role]: [*values, names[role]] for role, values in COLUMNS.items()}
    with pytest.raises(DataError, match="table's row 4 repeats the names of the columns"):
        kind.from_frame(library(columns))
    columns = {name: [*values, "task"] for name, values in columns.items()}
    assert kind.from_frame(library({n: v[:3] + v[4:] for n, v in columns.items()})).n_tasks == 3


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(COLUMNS),
        pd.DataFrame(COLUMNS, dtype=object),
        pd.DataFrame(COLUMNS, dtype="category"),
        pd.DataFrame(COLUMNS, dtype="string[pyarrow]"),
        pd.DataFrame(COLUMNS, index=[7, 7, 7]),
        pl.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS, schema_overrides=dict.fromkeys(COLUMNS, pl.Categorical)),
        pl.DataFrame(COLUMNS, schema_overrides={"label": pl.Enum(["z", "x", "y"])}),
        pa.table(COLUMNS),
        pa.table({k: pa.array(v).dictionary_encode() for k, v in COLUMNS.items()}),
        pa.table({k: pa.array(v, pa.large_string()) for k, v in COLUMNS.items()}),
        pa.table({k: pa.array(v, pa.string_view()) for k, v in COLUMNS.items()}),
        pa.concat_tables([pa.table(COLUMNS).slice(0, 1), pa.table(COLUMNS).slice(1)]),
        COLUMNS,
        tuple(COLUMNS.values()),
        CrowdLabels.from_arrays(*COLUMNS.values()),
    ],
    ids=lambda frame: type(frame).__module__.split(".")[0],
)
def test_every_form_gives_the_same(frame):
    labels = as_crowd_labels(frame)
    assert long_table(labels) == EXPECTED
    assert labels.classes.tolist() == ["x", "y"]
    assert labels.notes == ()


@pytest.mark.parametrize(
    ("values", "vocabulary"),
    [
        (pd.Series([2, 1, 2], dtype="Int64"), [1, 2]),
        (pd.Series([2.0, 1.0, 2.0]), [1, 2]),
        (pd.Series([True, False, True]), [False, True]),
        (pd.Series([2**40, 7, 2**40]), [7, 2**40]),
        (pd.Series(["007", "7", "007"]), ["007", "7"]),
        (pd.Series(["nan", "NA", "nan"]), ["NA", "nan"]),
        (pd.Series(["日本", "é", "日本"]), ["é", "日本"]),
    ],
)
def test_ids_of_any_type(values, vocabulary):
    frame = pd.DataFrame({"task": values, "worker": ["a", "b", "c"], "label": values})
    labels = CrowdLabels.from_frame(frame)
    assert labels.tasks.tolist() == vocabulary
    assert labels.classes.tolist() == vocabulary


def test_results_know_where_the_data_came_from():
    assert CrowdLabels.from_frame(pl.DataFrame(COLUMNS)).frame_library == "polars"
    assert CrowdLabels.from_frame(pa.table(COLUMNS)).frame_library == "pyarrow"
    assert CrowdLabels.from_frame(COLUMNS).frame_library is None


def test_columns_by_name_and_by_alias():
    frame = pd.DataFrame({"HITId": ["t"], "who": ["a"], "answer": ["x"], "Reward": ["$0.05"]})
    labels = CrowdLabels.from_frame(frame, worker="who", cost="Reward")
    assert labels.notes == ("columns recognised: task = 'HITId', label = 'answer'",)
    assert labels.columns["cost"].tolist() == [0.05]


def test_column_names_need_not_be_text():
    frame = pd.DataFrame([["t", "a", "x"]])
    assert long_table(CrowdLabels.from_frame(frame, task="0", worker="1", label="2")) == [
        ("t", "a", "x")
    ]


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (pd.DataFrame([[1, 2, 3, 4]], columns=["task", "worker", "label", "label"]), {},
         "several columns named 'label'; rename or remove one"),
        (pl.LazyFrame(COLUMNS), {}, r"LazyFrame cannot be read .*; call its collect\(\) first"),
        (42, {}, "int cannot be read as labels; give a pandas"),
        (pd.DataFrame(COLUMNS), {"worker": "wroker"}, "did you mean 'worker'"),
        (pd.DataFrame({"task": [], "worker": [], "label": []}), {}, "no annotations"),
        (pd.DataFrame({**COLUMNS, "label": [["x"], ["y"], ["x"]]}), {}, "label column holds lists"),
        (pd.DataFrame({**COLUMNS, "label": ["x", 1, "x"]}, dtype=object), {}, "mix types .*row 2"),
    ],
)  # fmt: skip
def test_unusable_frames_are_refused(frame, options, message):
    with pytest.raises(DataError, match=message):
        CrowdLabels.from_frame(frame, **options)


def test_unknown_options_are_refused_with_the_near_one():
    with pytest.raises(ParameterError, match=r"Unknown option 'wieght' \(did you mean 'weight'"):
        CrowdLabels.from_frame(pd.DataFrame(COLUMNS), wieght="w")
    with pytest.raises(ParameterError, match="Unknown column 'color'; known are timestamp"):
        CrowdLabels.from_arrays(*COLUMNS.values(), color=[1, 2, 3])
    with pytest.raises(
        ParameterError, match="duplicates is 'first'; choose one of auto, last, keep, error"
    ):
        CrowdLabels.from_arrays(*COLUMNS.values(), duplicates="first")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros(3), "not two-dimensional"),
        ("answers.csv", r"'answers.csv' is a path; read it first with wisecrowd.read"),
        (Path("a.csv"), "is a path"),
        ([], "not two-dimensional"),
        (([1], [1, 2], [1]), r"different lengths \(task 1, worker 2, label 1\)"),
    ],
)
def test_the_gate_refuses_what_it_cannot_read(data, message):
    with pytest.raises(DataError, match=message):
        as_crowd_labels(data)


# ----------------------------------------------------------------------------- ids and abstentions


@pytest.mark.parametrize("role", ["task", "worker"])
@pytest.mark.parametrize("empty", ["", " ", None])
def test_empty_ids_are_refused_with_rows(role, empty):
    columns = {**COLUMNS, role: ["a", empty, empty]}
    with pytest.raises(
        DataError, match=f"The {role} column is empty in rows 2, 3; fill in the {role}"
    ):
        CrowdLabels.from_frame(pl.DataFrame(columns))


def test_empty_labels_are_refused_unless_they_abstain():
    with pytest.raises(
        DataError, match=r"label \('answer'\) column is empty in row 2; .*abstain=''"
    ):
        CrowdLabels.from_frame(
            pd.DataFrame({"task": [1, 2], "worker": [1, 1], "answer": ["x", None]})
        )
    labels = CrowdLabels.from_arrays([1, 2, 3], [1, 1, 1], ["x", None, ""], abstain="")
    assert labels.n_annotations == 1
    assert labels.tasks.tolist() == [1, 2, 3]


@pytest.mark.parametrize("abstain", ["unsure", ["unsure"], ["unsure", "never seen"]])
def test_abstentions_are_counted_and_are_no_class(abstain):
    labels = CrowdLabels.from_arrays([1, 1, 2], list("abc"), ["x", "unsure", "y"], abstain=abstain)
    assert labels.classes.tolist() == ["x", "y"]
    assert labels.n_annotations == 2
    assert labels.notes == ("1 abstentions count as no label",)


def test_abstentions_of_integers_with_declared_classes():
    labels = CrowdLabels.from_arrays([1, 1], [1, 2], [0, -1], abstain=-1, classes=[0, 1])
    assert labels.n_annotations == 1
    assert labels.classes.tolist() == [0, 1]


def test_only_abstentions_are_no_data():
    with pytest.raises(DataError, match="no data rows with a label"):
        CrowdLabels.from_arrays([1], [1], ["?"], abstain="?")


def test_weights_follow_when_abstentions_go():
    labels = CrowdLabels.from_arrays(
        ["b", "a", "a"], [1, 1, 2], ["x", "?", "y"], abstain="?", weight=[5, 6, 7]
    )
    assert labels.to_dict()["weight"].tolist() == [7, 5]


# ------------------------------------------------------------------------------------ declarations


def test_declared_ids_keep_their_order_and_may_be_unused():
    labels = CrowdLabels.from_frame(
        pd.DataFrame(COLUMNS), classes=["y", "x", "z"], tasks=["t3", "t1", "t2"], workers=["b", "a"]
    )
    assert labels.classes.tolist() == ["y", "x", "z"]
    assert labels.tasks.tolist() == ["t3", "t1", "t2"]
    assert labels.workers.tolist() == ["b", "a"]
    assert sorted(long_table(labels)) == EXPECTED
    assert labels.labels_per_task.tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": ["x"]}, r"Label 'y' in row 2 is not among the declared classes \('x'\)"),
        ({"classes": ["x", "yy"]}, "did you mean 'yy'"),
        ({"tasks": ["t2"]}, r"Task 't1' in rows 2, 3 is not among the declared tasks"),
        ({"workers": ["a"]}, r"Worker 'b' in rows 1, 2 is not among the declared workers"),
    ],
)
def test_undeclared_ids_are_refused_with_rows(options, message):
    with pytest.raises(DataError, match=message):
        CrowdLabels.from_arrays(*COLUMNS.values(), **options)


@pytest.mark.parametrize("classes", [["x", "x"], [], ["x", None]])
def test_declared_classes_are_distinct(classes):
    with pytest.raises(ParameterError, match="declared classes must be distinct"):
        CrowdLabels.from_arrays(*COLUMNS.values(), classes=classes)


def test_classes_of_another_type_say_so():
    with pytest.raises(DataError, match="there is 1 of type int, not str"):
        CrowdLabels.from_arrays([1], [1], ["1"], classes=[0, 1])


# -------------------------------------------------------------------------------------- duplicates

REPEATED = {"task": ["t", "u", "t", "t"], "worker": ["a", "a", "a", "b"], "label": list("xyzx")}


def test_the_last_duplicate_counts_and_it_is_said():
    with pytest.warns(WisecrowdWarning, match="1 annotations repeat") as caught:
        labels = CrowdLabels.from_frame(pd.DataFrame(REPEATED))
    assert long_table(labels) == [("t", "a", "z"), ("t", "b", "x"), ("u", "a", "y")]
    assert labels.notes == (str(caught[0].message),)
    assert "the last in the table counts" in labels.notes[0]


@pytest.mark.parametrize(
    ("timestamp", "kept"),
    [
        ([9, 0, 1, 0], "x"),
        ([1, 0, 9, 0], "z"),
        ([1, 0, 1, 0], "z"),  # a draw: the last in the table
        ([1, 0, None, 0], "x"),  # a missing time is the earliest
        (["2024-01-02", "", "2024-01-01", ""], "x"),
        ([None, "2024-01-01", "2024-01-01", "2024-01-01"], "z"),
    ],
)
def test_the_latest_duplicate_counts(timestamp, kept):
    frame = pd.DataFrame({**REPEATED, "timestamp": timestamp})
    with pytest.warns(WisecrowdWarning, match="the latest timestamp counts"):
        labels = CrowdLabels.from_frame(frame)
    assert ("t", "a", kept) in long_table(labels)
    assert labels.n_annotations == 3


def test_a_duplicate_brings_its_own_weight_and_time():
    with pytest.warns(WisecrowdWarning):
        labels = CrowdLabels.from_arrays(
            ["t", "s", "t"], ["a"] * 3, ["x", "y", "z"], timestamp=[9, 1, 3], weight=[1, 2, 3]
        )
    assert labels.to_dict()["label"].tolist() == ["y", "x"]
    assert labels.weight.tolist() == [2, 1]
    assert labels.columns["timestamp"].tolist() == [1, 9]


def test_replicates_can_be_kept():
    labels = CrowdLabels.from_frame(pd.DataFrame(REPEATED), duplicates="keep")
    assert long_table(labels) == [
        ("t", "a", "x"),
        ("t", "a", "z"),
        ("t", "b", "x"),
        ("u", "a", "y"),
    ]
    assert labels.notes == ()


def test_duplicates_can_be_refused():
    with pytest.raises(DataError, match=r"same task in rows 1, 3; .*duplicates='keep'"):
        CrowdLabels.from_frame(pd.DataFrame(REPEATED), duplicates="error")


def test_rows_of_duplicates_count_abstentions_too():
    with pytest.raises(DataError, match="in rows 2, 3"):
        CrowdLabels.from_arrays(
            ["s", "t", "t"], ["a"] * 3, ["?", "x", "y"], abstain="?", duplicates="error"
        )


def test_two_questions_are_not_duplicates():
    with pytest.raises(DataError, match=r"two questions, 'color' and 'size' \(rows 1, 2\); keep"):
        CrowdLabels.from_arrays(["t", "t"], ["a", "a"], ["red", "big"], question=["color", "size"])
    labels = CrowdLabels.from_arrays(["t", "s"], ["a", "a"], ["r", "b"], question=["color", "size"])
    assert labels.columns["question"].tolist() == ["size", "color"]


# -------------------------------------------------------------------------------- optional columns


def test_optional_columns_are_parsed_and_sorted():
    frame = pl.DataFrame(
        {**COLUMNS, "weight": [1, 2, 3], "duration": [1.5, None, 2.0], "cost": ["$1", "", "0.5"],
         "timestamp": ["2024-01-01T00:00:00Z"] * 3, "worker_kind": ["model", None, "human"]}
    )  # fmt: skip
    labels = CrowdLabels.from_frame(frame)
    assert labels.weight.tolist() == [3, 2, 1]
    assert np.array_equal(labels.columns["duration"], [2, np.nan, 1.5], equal_nan=True)
    assert np.array_equal(labels.columns["cost"], [0.5, np.nan, 1], equal_nan=True)
    assert labels.columns["timestamp"].dtype == "datetime64[us]"
    assert labels.worker_kind.tolist() == ["human", "model"]


def test_a_worker_is_of_one_kind():
    with pytest.raises(DataError, match=r"Worker 'b' is of kind 'model' in row 1 and 'human' else"):
        CrowdLabels.from_arrays(*COLUMNS.values(), worker_kind=["model", "human", "human"])
    labels = CrowdLabels.from_arrays(*COLUMNS.values(), worker_kind={"a": "human"})
    assert labels.worker_kind.tolist() == ["human", None]


def test_wrong_weights_name_their_rows():
    with pytest.raises(
        DataError, match=r"weight column is negative, infinite or missing in rows 2, 3"
    ):
        CrowdLabels.from_arrays(*COLUMNS.values(), weight=[1, -1, None])
    with pytest.raises(
        DataError, match=r"different lengths \(task 3, worker 3, label 3, weight 2\)"
    ):
        CrowdLabels.from_arrays(*COLUMNS.values(), weight=[1, 2])


# ---------------------------------------------------------------------------------------- row order

PAIRS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 5)), min_size=1, max_size=40, unique=True
)


@given(PAIRS, st.randoms(use_true_random=False), st.sampled_from([int, str, "t{}".format]))
def test_the_order_of_rows_does_not_matter(pairs, random, as_id):
    rows = [(as_id(t), as_id(w), random.choice("xyz"), 0.1 + random.random()) for t, w in pairs]
    shuffled = random.sample(rows, len(rows))
    a, b = (
        CrowdLabels.from_arrays(*columns[:3], weight=columns[3], timestamp=columns[3])
        for columns in (list(map(list, zip(*table, strict=True))) for table in (rows, shuffled))
    )
    same(a, b)
    assert a.weight.tolist() == b.weight.tolist()
    assert a.columns["timestamp"].tolist() == b.columns["timestamp"].tolist()
    by_pair = {(t, w): (label, weight) for t, w, label, weight in rows}
    table = a.to_dict()
    for t, w, label, weight in zip(*list(table.values())[:4], strict=True):
        assert by_pair[t, w] == (label, weight)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.sampled_from("xy"),
                          st.sampled_from([1.0, 2.0])), min_size=1), st.randoms())  # fmt: skip
def test_the_order_of_replicates_does_not_matter(rows, random):
    shuffled = random.sample(rows, len(rows))
    a, b = (
        CrowdLabels.from_arrays(*columns[:3], weight=columns[3], duplicates="keep")
        for columns in (list(map(list, zip(*table, strict=True))) for table in (rows, shuffled))
    )
    same(a, b)
    assert a.weight.tolist() == b.weight.tolist()


def test_many_rows_take_the_fast_ways():
    rng = np.random.default_rng(0)
    n = 50_000
    task = np.char.add("task-", rng.integers(0, 9000, n).astype(str)).astype(object)
    worker = np.char.add("w", rng.integers(0, 40, n).astype(str)).astype(object)
    label = rng.choice(np.array(["cat", "dog"], dtype=object), n)
    labels = CrowdLabels.from_arrays(task, worker, label, duplicates="keep")
    expected = sorted(zip(task, worker, label, strict=True))
    assert long_table(labels) == expected


# -------------------------------------------------------------------------- what is no column or id


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ({"x", "y"}, "The label column is a set; give a list or an array"),
        ("xyx", "The label column is a str; give a list or an array"),
        (7, "The label column is a int; give a list or an array"),
        ([b"x", b"y", b"x"], "The label values are bytes; decode them to text first"),
        ([Decimal(1), Decimal(2), Decimal(1)], "The label values are of type decimal128"),
        (np.array([0.0, 2.0**53, 1.0]), r"label values are floats of 2\^53 and more"),
    ],
)
def test_what_cannot_be_a_column_of_ids(label, message):
    with pytest.raises(DataError, match=message):
        CrowdLabels.from_arrays(["t", "u", "v"], ["a", "a", "b"], label)


@pytest.mark.parametrize(
    "tasks",
    [
        np.array([2**64 - 1, 2**64 - 2, 0], dtype=np.uint64),
        np.array([3, 1, 2], dtype=">i4"),
        np.array([0, 1, 2], dtype=np.float16),
    ],
)
def test_integers_of_every_size_are_ids(tasks):
    labels = CrowdLabels.from_arrays(tasks, ["a", "a", "b"], ["x", "y", "x"])
    assert labels.tasks.tolist() == sorted(int(task) for task in tasks)


def test_times_are_kept_as_pythons_own():
    times = np.array(["2024-01-02", "2024-01-01"], dtype="datetime64[ns]")
    labels = CrowdLabels.from_arrays(times, ["a", "b"], ["x", "y"])
    assert labels.tasks.tolist() == [datetime(2024, 1, 1), datetime(2024, 1, 2)]
    with pytest.raises(DataError, match="task values are times of less than a microsecond"):
        CrowdLabels.from_arrays(times + np.timedelta64(1, "ns"), ["a", "b"], ["x", "y"])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (0.0, "weight values are all zero: .*; scale them"),
        (1e-300, "weight values are all at most 1e-300, 3e-300 in total"),
        (1e308, "all at most 1e\\+308, inf in total"),
    ],
)
def test_weights_that_count_nothing_or_everything(weight, message):
    with pytest.raises(DataError, match=message):
        CrowdLabels.from_arrays(*COLUMNS.values(), weight=[weight] * 3)


def test_one_column_serves_one_role():
    with pytest.raises(DataError, match=r"column 'worker' is named for the task and the worker"):
        CrowdLabels.from_frame(pd.DataFrame(COLUMNS), task="worker", worker="worker")


def test_declared_classes_as_one_text():
    with pytest.raises(ParameterError, match=r"classes is 'xy'; give a list of all classes"):
        CrowdLabels.from_arrays(*COLUMNS.values(), classes="xy")
    with pytest.raises(ParameterError, match=r"'x' is named twice"):
        CrowdLabels.from_arrays(*COLUMNS.values(), classes=["x", "y", "x"])


def test_an_array_without_rows_is_a_matrix_without_labels():
    with pytest.raises(DataError, match="There are no annotations"):
        as_crowd_labels(np.empty((0, 3)))


@pytest.mark.parametrize("data", [{"t1": {"ann": "x"}}, {"task": None}, {"a": {1}, "b": "text"}])
def test_mappings_that_hold_no_columns_are_refused(data):
    with pytest.raises(DataError, match=r"No column looks like the (task|worker): there are '"):
        as_crowd_labels(data)


def test_a_column_that_is_a_mapping_is_refused():
    with pytest.raises(DataError, match="The task column is a dict; give a list or an array"):
        as_crowd_labels({"task": {"a": 1}, "worker": ["w"], "label": ["x"]})


def test_a_frame_without_columns():
    with pytest.raises(DataError, match="there are none; name it"):
        as_crowd_labels(pd.DataFrame())


def test_a_long_frame_without_names_is_not_called_wide():
    rng = np.random.default_rng(0)
    rows = [(task, worker, rng.integers(3)) for task in range(40) for worker in range(5)]
    with pytest.raises(DataError, match=r"'0', '1', '2' have numbers .* task, worker and label"):
        as_crowd_labels(pd.DataFrame(rows))
    with pytest.raises(DataError, match=r"looks like a wide table, .* wide=True \(in read, agg"):
        as_crowd_labels(pd.DataFrame(rng.integers(0, 2, (40, 3))))


def test_integers_of_more_than_64_bits():
    with pytest.raises(DataError, match="task values hold integers of more than 64 bits; convert"):
        as_crowd_labels(([10**30, 10**30], ["a", "b"], ["x", "y"]))


@pytest.mark.parametrize("empty", [None, float("nan"), "", "  "])
@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_an_empty_column_of_weights_is_left_out_with_a_note(kind, empty):
    container = {"labels": CrowdLabels, "numbers": CrowdNumbers}[kind]
    frame = pd.DataFrame({"task": ["t1", "t1", "t2"], "worker": ["a", "b", "a"],
                          "label": [1, 2, 3], "weight": [empty] * 3})  # fmt: skip
    if kind == "numbers":
        frame = frame.rename(columns={"label": "value"})
    for table in (frame, {name: frame[name].tolist() for name in frame}):
        made = container.from_frame(table)
        assert made.weight is None
        assert "the column 'weight' is empty and not read" in made.notes
    with pytest.raises(DataError, match="weight"):  # somebody asked for it
        container.from_frame(frame, weight="weight")
    frame["weight"] = [1.0, float("nan"), 1.0]
    with pytest.raises(DataError, match="missing"):
        container.from_frame(frame)
