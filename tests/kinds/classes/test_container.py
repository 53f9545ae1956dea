from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.model_selection import KFold, train_test_split

from wisecrowd import CrowdLabels
from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.classes.container import labelled_by_several, vote_table

TASK = ["t3", "t1", "t2", "t1", "t3"]
WORKER = ["b", "b", "a", "a", "a"]
LABEL = ["x", "y", "y", "x", "x"]


@pytest.fixture
def labels():
    return CrowdLabels.from_arrays(
        TASK, WORKER, LABEL, weight=[1, 2, 3, 4, 5], timestamp=[10, 20, 30, 40, 50],
        worker_kind={"a": "human"}, classes=["x", "y", "z"],
    )  # fmt: skip


def rows_of(labels):
    table = labels.to_dict()
    return list(zip(*(values.tolist() for values in table.values()), strict=True))


def test_annotations_are_sorted_by_task_and_worker(labels):
    assert labels.task.tolist() == [0, 0, 1, 2, 2]
    assert labels.worker.tolist() == [0, 1, 0, 0, 1]
    assert labels.label.tolist() == [0, 1, 1, 0, 0]
    assert labels.weight.tolist() == [4, 2, 3, 5, 1]
    assert labels.columns["timestamp"].tolist() == [40, 20, 30, 50, 10]
    assert {array.dtype for array in (labels.task, labels.worker, labels.label)} == {np.dtype("i4")}


def test_sizes_and_text(labels):
    assert (labels.n_tasks, labels.n_workers, labels.n_classes, labels.n_annotations) == (
        3,
        2,
        3,
        5,
    )
    assert len(labels) == 3
    assert labels.shape == (3,)
    assert repr(labels) == "CrowdLabels(3 tasks, 2 workers, 3 classes, 5 annotations)"


def test_views_by_task_and_by_worker(labels):
    assert labels.indptr.tolist() == [0, 2, 3, 5]
    assert labels.labels_per_task.tolist() == [2, 1, 2]
    assert labels.labels_per_worker.tolist() == [3, 2]
    view = labels.by_worker
    for j in range(labels.n_workers):
        rows = view.order[view.indptr[j] : view.indptr[j + 1]]
        assert rows.tolist() == np.flatnonzero(labels.worker == j).tolist()
    assert labels.class_totals.tolist() == [10, 5, 0]


def test_the_long_table_has_every_column(labels):
    assert list(labels.to_dict()) == [
        "task",
        "worker",
        "label",
        "weight",
        "timestamp",
        "worker_kind",
    ]
    assert rows_of(labels)[0] == ("t1", "a", "x", 4, 40, "human")


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        ([0, 2], [0, 2]),
        ([2, 0], [2, 0]),
        (np.array([1]), [1]),
        (slice(None, 2), [0, 1]),
        (slice(None, None, -1), [2, 1, 0]),
        (np.array([True, False, True]), [0, 2]),
        ([False, False, False], []),
        ([-1], [2]),
        (1, [1]),
        (([0, 1], ...), [0, 1]),
        ((slice(1, None), ...), [1, 2]),
        (np.array([], dtype=np.int64), []),
    ],
)
def test_rows_are_tasks_and_the_other_ids_stay(labels, rows, kept):
    part = labels[rows]
    assert part.tasks.tolist() == [f"t{i + 1}" for i in kept]
    assert part.workers.tolist() == ["a", "b"]
    assert part.classes.tolist() == ["x", "y", "z"]
    expected = [row for i in kept for row in rows_of(labels) if row[0] == f"t{i + 1}"]
    assert rows_of(part) == expected
    assert np.all(np.diff(part.task) >= 0)
    assert part.worker_kind.tolist() == ["human", None]


def test_a_task_selected_twice_is_refused(labels):
    with pytest.raises(DataError, match="selected twice"):
        labels[[0, 0]]
    with pytest.raises(IndexError):
        labels[[7]]


def test_select_annotations_keeps_all_ids(labels):
    part = labels.select_annotations(labels.worker == 1)
    assert part.n_tasks == 3
    assert part.labels_per_task.tolist() == [1, 0, 1]
    assert part.weight.tolist() == [2, 1]


def test_scikit_learns_splitters_see_tasks(labels):
    folds = list(KFold(3).split(labels))
    assert sorted(int(i) for _, test in folds for i in test) == [0, 1, 2]
    for train, test in folds:
        assert labels[train].n_annotations + labels[test].n_annotations == 5
    train, test = train_test_split(labels, test_size=1, random_state=0)
    assert isinstance(train, CrowdLabels)
    assert sorted([*train.tasks, *test.tasks]) == ["t1", "t2", "t3"]


def test_pickling_keeps_everything(labels):
    assert labels.indptr is not None  # a cached view does not travel
    again = pickle.loads(pickle.dumps(labels))
    assert rows_of(again) == rows_of(labels)
    assert again.notes == labels.notes
    assert again.worker_kind.tolist() == labels.worker_kind.tolist()
    assert not again.task.flags.writeable


def test_nothing_can_be_changed(labels):
    arrays = [labels.task, labels.worker, labels.label, labels.weight, labels.tasks, labels.workers,
              labels.classes, labels.columns["timestamp"], labels.worker_kind]  # fmt: skip
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[0]
    with pytest.raises(TypeError):
        labels.columns["cost"] = np.zeros(5)
    with pytest.raises(AttributeError):
        labels.task = np.zeros(5)


def test_the_users_arrays_stay_writable():
    weight = np.ones(2)
    task = np.array([0, 1], dtype=np.int32)
    CrowdLabels.from_arrays(task, np.array([0, 0], dtype=np.int32), task, weight=weight)
    weight[0] = 2
    task[0] = 1


def test_scikit_learn_sees_one_entry_per_task_and_no_vector_of_classes():
    labels = CrowdLabels.from_arrays([0, 0, 2], ["a", "b", "a"], ["x", "y", "x"], tasks=[0, 1, 2])
    seen = np.asarray(labels)
    assert (seen.shape, seen.dtype) == ((3,), object)
    assert [part.tolist() for part in seen] == [["x", "y"], [], ["x"]]
    assert np.asarray(labels[[]]).shape == (0,)


def test_votes_count_labels_or_their_weight():
    labels = CrowdLabels.from_arrays([0, 0, 1], [0, 1, 0], [1, 1, 0], weight=[1.0, 2.0, 3.0])
    np.testing.assert_array_equal(vote_table(labels), [[0, 2], [1, 0]])
    np.testing.assert_array_equal(vote_table(labels, weighted=True), [[0, 3], [3, 0]])


def test_one_worker_who_labels_a_task_twice_is_one_worker():
    labels = CrowdLabels.from_arrays(
        [0, 0, 1, 1, 1], [0, 0, 0, 0, 2], [0, 1, 0, 0, 1], tasks=range(4), duplicates="keep"
    )
    np.testing.assert_array_equal(labelled_by_several(labels), [False, True, False, False])


def test_a_label_of_weight_zero_does_not_count():
    weight = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    labels = CrowdLabels.from_arrays([0, 0, 1, 1, 2, 2], [0, 1] * 3, [0] * 6, weight=weight)
    np.testing.assert_array_equal(labelled_by_several(labels), [False, True, False])
