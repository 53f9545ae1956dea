"""Rows of features: ids of tasks, and tasks of the fit that are found by labels and output."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import DeepBP, InstanceConfusion
from wisecrowd.learning.training.rows_of_features import as_targets, find_tasks, label_keys


def long(tasks, **options):
    return CrowdLabels.from_arrays(tasks, ["ann"] * len(tasks), [t for t, _ in enumerate(tasks)],
                                   **options)  # fmt: skip


def by_row(labels):
    """Return the label of each row, None where there is none."""
    found = [None] * labels.n_tasks
    for row, label in zip(labels.task.tolist(), labels.label.tolist(), strict=True):
        found[row] = labels.classes[label]
    return found


@pytest.mark.parametrize("make", [int, str])
def test_row_numbers_align_however_they_are_spelled_and_sorted(make):
    # As text "10" comes before "2"; rows must not.
    order = [10, 2, 0, 11, 1, 3, 9, 4, 8, 5, 7, 6]
    labels = CrowdLabels.from_arrays([make(i) for i in order], ["a"] * 12, [f"c{i}" for i in order])
    aligned = as_targets(labels, 12)
    assert by_row(aligned) == [f"c{i}" for i in range(12)]
    assert aligned.tasks.tolist() == [make(i) for i in range(12)]


def test_ids_align_in_any_order_and_rows_may_lack_labels():
    labels = CrowdLabels.from_arrays(["b", "a", "b"], ["x", "x", "y"], [0, 1, 0])
    aligned = as_targets(labels, 3, tasks=["b", "z", "a"])
    assert aligned.tasks.tolist() == ["b", "z", "a"]
    assert aligned.labels_per_task.tolist() == [2, 0, 1]
    assert by_row(aligned) == [0, None, 1]


def test_weights_and_columns_travel_with_their_annotations():
    labels = CrowdLabels.from_arrays(
        ["b", "a", "c"], ["x"] * 3, [0, 1, 0], weight=[1.0, 2.0, 3.0], cost=[10, 20, 30]
    )
    aligned = as_targets(labels, 3, tasks=["c", "b", "a"])
    assert aligned.weight.tolist() == [3.0, 1.0, 2.0]
    assert aligned.columns["cost"].tolist() == [30, 10, 20]


def test_other_ids_without_tasks_are_refused_with_both_sizes():
    with pytest.raises(DataError, match=r"X has 5 rows and y has 2 tasks .*tasks=ids"):
        as_targets(long(["img7", "img8"]), 5)
    with pytest.raises(DataError, match=r"not the row numbers 0 to 1"):
        as_targets(long([1, 2]), 2)  # counted from 1
    with pytest.raises(DataError, match="not the row numbers"):
        as_targets(long(["00", "01"]), 2)
    with pytest.raises(DataError, match="not the row numbers"):
        as_targets(long([-1, 0]), 2)


def test_labelled_tasks_without_features_are_named():
    with pytest.raises(DataError, match=r"1 of 3 labelled tasks have no features, such as 'bb'"):
        as_targets(long(["a", "bb", "c"]), 2, tasks=["a", "c"])


def test_tasks_are_as_many_as_rows_and_differ():
    with pytest.raises(DataError, match=r"tasks has shape \(1,\) and X has 2 rows"):
        as_targets(long(["a"]), 2, tasks=["a"])
    with pytest.raises(DataError, match="'a' twice"):
        as_targets(long(["a"]), 2, tasks=["a", "a"])


def test_selected_tasks_align_with_features_selected_alike():
    labels = long(list(range(6)))
    chosen = np.array([4, 1, 3])
    assert by_row(as_targets(labels[chosen], 3)) == [4, 1, 3]
    assert by_row(as_targets(labels[chosen][[2, 0]], 2)) == [3, 4]
    with pytest.raises(DataError, match="3 selected tasks"):
        as_targets(labels[chosen], 6)  # X was not selected
    named = long(["a", "b", "c"])
    with pytest.raises(DataError, match="tasks=ids"):
        as_targets(named[[0, 1]], 2)


def test_a_matrix_and_one_dimension_are_in_the_order_of_rows():
    matrix = as_targets(np.array([[0, 2], [1, 1]]), 2)
    assert matrix.n_workers == 2
    one = as_targets(["x", "y", "x"], 3, tasks=["c", "b", "a"])
    assert (by_row(one), one.tasks.tolist(), one.n_workers) == (["x", "y", "x"], ["c", "b", "a"], 1)
    with pytest.raises(DataError, match=r"X has 3 rows and y has 2 rows"):
        as_targets(np.zeros((2, 2), int), 3)
    with pytest.raises(DataError, match=r"X has 3 rows and y has 2 labels"):
        as_targets(["x", "y"], 3)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y is None"),
        (np.array([0.0, np.nan]), "NaN in row 1"),
        (np.array([0.0, np.inf]), "infinity in row 1"),
        (np.array([0.5, 1.0]), "Unknown label type"),
        (np.array(["a", None], object), "NaN in row 1"),
    ],
)
def test_bad_labels(y, message):
    with pytest.raises(DataError, match=message):
        as_targets(y, 2)


def crowd(n=40, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    X = np.eye(3)[truth] + 0.5 * rng.normal(size=(n, 3))
    votes = np.where(rng.random((n, 4)) < 0.7, truth[:, None], rng.integers(3, size=(n, 4)))
    return X, votes


def test_keys_know_worker_label_and_weight_and_no_order():
    task = np.repeat(np.arange(6), 2)
    worker = [0, 1, 1, 0, 0, 1, 0, 2, 0, 1, 0, 1]
    label = [0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1]
    weight = np.array([1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 1.0])
    names = [0, 1, 2], [0, 1]
    labels = CrowdLabels(
        task.astype(np.int32), np.array(worker, np.int32), np.array(label, np.int32),
        np.arange(7), *map(np.array, names), weight=weight,
    )  # fmt: skip
    keys = label_keys(labels)
    assert keys[0] == keys[1]
    assert len(set(keys[1:6].tolist())) == 5
    assert keys[6] == 0  # no labels
    unweighted = label_keys(labels.select_annotations(labels.task < 4))
    np.testing.assert_array_equal(unweighted[:4], keys[:4])


@pytest.mark.parametrize("n_classes", [2, 5])
def test_finds_the_nearest_output_of_the_same_labels(n_classes):
    rng = np.random.default_rng(0)
    keys = rng.integers(1, 4, 500)
    output = rng.dirichlet(np.ones(n_classes), 500)
    order = rng.permutation(500)
    rounded = output[order] + rng.uniform(-1e-7, 1e-7, output.shape)
    found = find_tasks(keys, output, keys[order], rounded)
    np.testing.assert_allclose(output[found], rounded, atol=1e-5)
    assert (found == order).mean() > 0.98
    assert (find_tasks(keys, output, keys % 3 + 1, output) < 0).mean() > 0.9
    assert (find_tasks(keys, output, keys, output + 1e-3) < 0).mean() > 0.7
    none = np.zeros(500, np.int64)
    assert (find_tasks(none, output, keys, output) == -1).all()
    assert (find_tasks(keys, output, none, output) == -1).all()


@pytest.mark.parametrize(
    "method",
    [
        DeepBP(module="linear", epochs=2),
        InstanceConfusion(
            module="linear", epochs=4, lr=0.1, variant="anchor", warm_up=2, threshold=0.4
        ),
    ],
    ids=lambda method: type(method).__name__,
)
def test_the_ids_of_tasks_do_not_matter_and_other_labels_make_a_new_task(method):
    X, votes = crowd()
    model = method.fit(X, votes, gold={3: 1})
    rows = np.array([7, 2, 30])
    np.testing.assert_allclose(model.predict_proba(X[rows], votes[rows]), model.probas_[rows])
    assert model.probas_[3].max() == 1.0
    new = model.predict_proba(X, np.roll(votes, 1, axis=1))
    assert np.abs(new - model.probas_).max() > 1e-3
    assert model.predict_proba(X[3:4], votes[3:4]).max() < 1.0  # gold is not given again
