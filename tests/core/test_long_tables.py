"""Arrays of long rows are refused, and matrices of three workers are not."""

import numpy as np
import pandas as pd
import pytest

from wisecrowd import CrowdLabels
from wisecrowd.aggregation import MajorityVote
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.long_tables import looks_long
from wisecrowd.core.validation import as_crowd_labels

SHAPES = [(30, 5, 3), (30, 20, 5), (100, 1, 1), (100, 20, 1), (100, 100, 3), (500, 50, 10)]


def long_rows(n_tasks, n_workers, per_task, n_classes=4, *, seed=0, shuffle=False):
    """Return (task, worker, label) rows of integer ids that all start at 0."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), per_task)
    worker = [rng.choice(n_workers, per_task, replace=False) for _ in range(n_tasks)]
    truth = rng.integers(0, n_classes, n_tasks)
    right = rng.random(len(task)) < 0.8
    label = np.where(right, truth[task], rng.integers(0, n_classes, len(task)))
    rows = np.column_stack([task, np.concatenate(worker), label])
    return rows[rng.permutation(len(rows))] if shuffle else rows


def named(rows):
    """Return rows with text ids."""
    prefixes = np.array(["task-", "worker-", "class-"], dtype=object)
    return prefixes + rows.astype(str).astype(object)


def matrix(n_tasks, n_classes, accuracy, *, skew=0.0, seed=0):
    """Return labels of three workers, each right with its own probability."""
    rng = np.random.default_rng(seed)
    share = np.arange(1, n_classes + 1) ** -skew
    truth = rng.choice(n_classes, n_tasks, p=share / share.sum())
    guesses = rng.integers(0, n_classes, (n_tasks, 3))
    right = rng.random((n_tasks, 3)) < np.array(accuracy)
    return np.where(right, truth[:, None], guesses)


# ------------------------------------------------------------------------------ long tables


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_long_tables_of_integer_ids_are_found(shape, n_classes, shuffle):
    for seed in range(5):
        rows = long_rows(*shape, n_classes, seed=seed, shuffle=shuffle)
        for columns in ([0, 1, 2], [1, 0, 2]):
            assert looks_long(rows[:, columns]), seed


@pytest.mark.parametrize("shape", [*SHAPES, (4, 3, 3), (5, 3, 2)])
def test_long_tables_of_text_ids_are_found(shape):
    for seed in range(5):
        rows = named(long_rows(*shape, seed=seed))
        assert looks_long(rows), seed
        assert looks_long(rows.astype(str)), seed


@pytest.mark.parametrize("seed", range(5))
def test_a_fourth_column_of_times_does_not_hide_a_long_table(seed):
    rows = long_rows(60, 10, 4, seed=seed)
    times = 1_700_000_000 + np.arange(len(rows))
    assert looks_long(np.column_stack([rows, times]))
    assert looks_long(np.column_stack([named(rows), times.astype(object)]))


def test_a_frame_of_mixed_columns_is_refused_with_both_readings():
    frame = pd.DataFrame(long_rows(40, 5, 3), columns=["task", "worker", "label"])
    frame["worker"] = [f"w{j}" for j in frame["worker"]]
    message = (
        r"120 × 3 array.*CrowdLabels.from_arrays\(a\[:, 0\], a\[:, 1\], a\[:, 2\]\).*"
        r"CrowdLabels.from_matrix\(a\)"
    )
    for given in (frame.to_numpy(), frame.astype(str).to_numpy(dtype=str)):
        with pytest.raises(DataError, match=message):
            MajorityVote().fit(given)
    a = frame.to_numpy()
    assert CrowdLabels.from_arrays(a[:, 0], a[:, 1], a[:, 2]).n_tasks == 40


def test_a_list_of_rows_is_refused_with_both_readings():
    rows = [tuple(row) for row in named(long_rows(10, 4, 3)).tolist()]
    with pytest.raises(DataError, match=r"from_arrays\(\*zip\(\*rows\)\).*from_matrix\(rows\)"):
        as_crowd_labels(rows)
    assert CrowdLabels.from_arrays(*zip(*rows, strict=True)).n_tasks == 10


@pytest.mark.parametrize("n_workers", [4, 10])
def test_large_designs_are_sampled(n_workers):
    rows = long_rows(20_000, n_workers, n_workers // 2, 3)
    for given in (rows, rows.tolist()):
        with pytest.raises(DataError, match="looks like a long table"):
            as_crowd_labels(given)
    labels = matrix(50_000, 5, (0.8, 0.7, 0.6))
    assert as_crowd_labels(labels).n_workers == 3


def test_values_that_cannot_be_ids_are_left_to_the_gate():
    rows = np.array([["t1", "ann", {"a": 1}]] * 6, dtype=object)
    with pytest.raises(DataError, match="label"):
        as_crowd_labels(rows)


def test_a_declared_matrix_is_not_doubted():
    rows = long_rows(30, 20, 5)
    assert CrowdLabels.from_matrix(rows, type="labels").n_workers == 3


# --------------------------------------------------------------------------------- matrices


@pytest.mark.parametrize("skew", [0.0, 1.0])
@pytest.mark.parametrize("n_classes", [2, 3, 5, 10, 30, 100])
@pytest.mark.parametrize("n_tasks", [3, 4, 6, 10, 20, 50, 200, 1000])
def test_matrices_of_three_workers_are_not_doubted(n_tasks, n_classes, skew):
    for accuracy in ((0.9, 0.9, 0.9), (0.6, 0.6, 0.6), (0.9, 0.8, 0.0), (0.0, 0.0, 0.0)):
        for seed in range(5):
            labels = matrix(n_tasks, n_classes, accuracy, skew=skew, seed=seed)
            assert not looks_long(labels), (accuracy, seed)
        assert not looks_long(labels.astype(str).astype(object)), accuracy


@pytest.mark.parametrize("n_classes", [2, 10])
def test_spammers_gaps_and_sorted_tasks_do_not_make_a_long_table(n_classes):
    for seed in range(10):
        labels = matrix(100, n_classes, (0.8, 0.7, 0.6), seed=seed).astype(float)
        constant = labels.copy()
        constant[:, 2] = 0
        gaps = np.where(np.random.default_rng(seed).random(labels.shape) < 0.4, np.nan, labels)
        for given in (constant, gaps, labels[np.argsort(labels[:, 0])]):
            assert not looks_long(given), seed
    assert not looks_long(np.tile([0, 1, 2], (50, 1)))  # every worker has a favourite class


def test_other_shapes_are_left_alone():
    rows = long_rows(30, 20, 5)
    assert as_crowd_labels(rows[:, [2, 2]]).n_workers == 2
    assert as_crowd_labels(np.zeros((2, 3), dtype=int)).n_workers == 3


# ---------------------------------------------------------------------------- ids in a matrix


def with_ids(first, *, n_classes=3):
    labels = matrix(len(first), n_classes, (0.8, 0.8, 0.8))
    rows = np.empty((len(first), 4), dtype=object)
    rows[:, 0], rows[:, 1:] = first, labels
    return rows


@pytest.mark.parametrize(
    "rows",
    [
        with_ids(range(10)),
        with_ids(range(10)).astype(int),
        with_ids(range(1, 11)).astype(float),
        with_ids([f"essay {k}" for k in range(10)]),
        with_ids([105, 101, 120, 107, 111, 108]).astype(int),
        with_ids(range(10)).tolist(),
    ],
    ids=["objects", "integers", "floats", "texts", "unordered", "lists"],
)
def test_a_first_column_of_task_ids_is_no_worker(rows):
    with pytest.raises(DataError, match=r"The first column of the \d+ × 4 array .* tasks=a\[:, 0]"):
        MajorityVote().fit(rows)
    a = np.array(rows, dtype=object)
    assert CrowdLabels.from_matrix(a[:, 1:], tasks=a[:, 0]).n_workers == 3


def test_numbers_of_rows_are_labels_if_the_user_says_so():
    assert CrowdLabels.from_matrix(with_ids(range(10))).n_workers == 4


@pytest.mark.parametrize(
    "rows",
    [
        matrix(12, 10, (0.9, 0.9, 0.9)),
        np.array([[0, 0, 1, 0], [1, 1, 1, 1], [2, 2, 1, 2], [3, 3, 2, 3], [4, 4, 2, 4]]),
        np.array([[0, 0, 1, 0], [1, 1, 1, 1], [2, 1, 1, 1], [3, 1, 0, 1]]),
        np.array([[0, 0, 1, 0], [2, 1, 1, 1], [1, 2, 1, 1], [4, 1, 0, 1], [3, 3, 1, 1]]),
    ],
    ids=["many classes", "a perfect crowd", "few rows", "shared values"],
)
def test_workers_with_different_labels_are_no_ids(rows):
    assert MajorityVote().fit(rows).labels_.shape == (len(rows),)
