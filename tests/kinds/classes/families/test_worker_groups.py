from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.inference.engine import cut_tasks
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.dependence import Dependence
from wisecrowd.kinds.classes.families.worker_groups import (
    Opinions,
    _opposed,
    groups_of,
    linked_groups,
)
from wisecrowd.kinds.classes.prior import TaskPrior

LABELS = CrowdLabels.from_matrix([[0, 1, 0, 1], [1, 1, 1, 0]], workers=["a", "b", "c", "d"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([7, 3, 7, 3], [0, 1, 0, 1]),
        (["x", "y", "z", "y"], [-1, 0, -1, 0]),
        ({"d": 1, "b": 1}, [-1, 0, -1, 0]),
        ({}, [-1, -1, -1, -1]),
        (np.zeros(4), [0, 0, 0, 0]),
        ("auto", [-1, -1, -1, -1]),
        (9, [-1, -1, -1, -1]),
        (1, [0, 0, 0, 0]),
    ],
)
def test_groups_in_every_form(given, expected):
    np.testing.assert_array_equal(groups_of(given, LABELS), expected)


@pytest.mark.parametrize("bad", ["none", 0, -1, True, [1, 2], None, {"z": 1}, 2.5])
def test_bad_groups(bad):
    if bad is True:  # one group of everybody, as True is 1 to Python: refused all the same
        with pytest.raises(ParameterError, match="integer"):
            groups_of(bad, LABELS)
        return
    with pytest.raises(ParameterError):
        groups_of(bad, LABELS)


def dependence_of(n_workers, links, n_tested=None):
    first, second = np.triu_indices(n_workers, 1)
    pair = set(links)
    linked = np.array([(a, b) in pair for a, b in zip(first, second, strict=True)])
    z = np.where(linked, 6.0, 0.0)
    p, n = np.where(linked, 1e-9, 0.5), len(first)
    flat = np.where(linked, 0.9, 0.5)
    return Dependence(
        first.astype(np.int32), second.astype(np.int32), np.full(n, 100.0), flat, np.full(n, 0.5),
        z, p, np.where(linked, 1e-7, 0.5), np.zeros((n_workers, 2, 1)),
        np.ones(n_workers, bool), 0.0,
    )  # fmt: skip


def test_more_than_half_of_a_groups_pairs_are_linked():
    clique = [(0, 1), (0, 2), (1, 2), (2, 3)]  # 3 hangs on by one link of three
    np.testing.assert_array_equal(linked_groups(dependence_of(6, clique), 6), [0, 0, 0, -1, -1, -1])
    two = [(0, 4), (1, 2)]
    np.testing.assert_array_equal(linked_groups(dependence_of(6, two), 6), [0, 1, 1, -1, 0, -1])


def test_a_pair_alone_must_stand_out_among_all_pairs():
    found = dependence_of(6, [(0, 4)])
    weak = np.where(found.p < 0.1, 2e-3, found.p)
    weaker = Dependence(**{**vars(found), "p": weak})
    assert (linked_groups(weaker, 6) == -1).all()


def test_finds_the_groups_of_its_own_simulator():
    crowd = (
        5 * simulate.DependentGroup()
        + 6 * simulate.OneCoinWorkers()
        + 4 * simulate.DependentGroup()
    )
    made = simulate.crowd(800, crowd, simulate.Dense(), n_classes=3)
    expected = [0] * 5 + [-1] * 6 + [1] * 4
    np.testing.assert_array_equal(groups_of("auto", made.labels), expected)


@pytest.mark.parametrize(("copiers", "n_classes"), [((3, 3), 2), ((3, 3), 3), ((4,), 4), ((1,), 3)])
def test_more_copies_are_not_harder_to_find(copiers, n_classes):
    """Copiers label the tasks of their source and share few tasks with everybody else."""
    coin = simulate.FixedConfusion(
        (0.77 - 0.23 / (n_classes - 1)) * np.eye(n_classes) + 0.23 / (n_classes - 1)
    )
    made = simulate.crowd(
        400, 30 * coin, simulate.PerTask(5), n_classes=n_classes, random_state=2
    ).labels
    rng = np.random.default_rng(0)
    columns = [[made.task, made.worker, made.label]]
    expected = np.full(30 + sum(copiers), -1)
    for source, n in enumerate(copiers):
        rows = np.flatnonzero(made.worker == source)
        expected[source] = source
        for _ in range(n):
            copier = 28 + len(columns) + 1
            slip = rng.random(len(rows)) < 0.03
            label = np.where(slip, rng.integers(0, n_classes, len(rows)), made.label[rows])
            columns.append([made.task[rows], np.full(len(rows), copier), label])
            expected[copier] = source
    labels = CrowdLabels.from_arrays(*map(np.concatenate, zip(*columns, strict=True)))
    np.testing.assert_array_equal(groups_of("auto", labels), expected)


def test_asks_for_so_many_groups():
    crowd = sum((4 * simulate.DependentGroup() for _ in range(3)), 4 * simulate.DependentGroup())
    made = simulate.crowd(600, crowd, simulate.Dense(), n_classes=3)
    np.testing.assert_array_equal(groups_of(4, made.labels), np.repeat(np.arange(4), 4))


def test_opinions_by_hand():
    labels = CrowdLabels.from_arrays(
        [0, 0, 0, 1, 1, 2], ["a", "b", "c", "b", "c", "a"], [1, 0, 0, 1, 1, 0],
        weight=[1.0, 2.0, 1.0, 0.0, 0.0, 1.0],
    )  # fmt: skip
    (shard,) = cut_tasks(labels, TaskPrior(np.zeros((1, 2))), n_shards=1)
    opinions = Opinions.of(shard, np.array([-1, 0, 0], dtype=np.int32), 2)
    np.testing.assert_array_equal(opinions.task, [0, 0, 1, 2])
    np.testing.assert_array_equal(opinions.group, [0, -1, 0, -1])
    np.testing.assert_array_equal(opinions.of_annotation, [1, 0, 0, 2, 2, 3])
    np.testing.assert_array_equal(opinions.votes, [[3, 0], [0, 1], [0, 0], [1, 0]])
    np.testing.assert_array_equal(opinions.shared, [0])  # the other opinion has no weight
    np.testing.assert_array_equal(opinions.fused_votes(hard=True), [[1, 1], [0, 0], [1, 0]])


@pytest.mark.parametrize(("n_colluders", "seed"), [(6, 0), (7, 5), (4, 2)])
def test_the_honest_majority_is_not_taken_for_a_group(n_colluders, seed):
    """Colluders as the reference would explain all others as one group, and win every vote."""
    crowd = 9 * simulate.OneCoinWorkers(8, 2) + n_colluders * simulate.Colluders(0.95)
    made = simulate.crowd(300, crowd, simulate.Dense(), n_classes=3, random_state=seed)
    np.testing.assert_array_equal(groups_of("auto", made.labels), [-1] * 9 + [0] * n_colluders)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([-1, -1, -1, 0, 0], [0, 0, 0, -1, -1], True),  # changed places
        ([-1, -1, -1, -1, 0, 0], [-1, 0, 0, 0, -1, -1], True),  # but for one of them
        ([-1, -1, -1, 0, 0], [1, 1, -1, 0, 0], False),  # the second suspects two more
        ([-1] * 5, [-1, -1, 0, 0, 0], False),
        ([0, 0, 1, 1], [-1, -1, 0, 0], True),  # nobody to compare them by
    ],
)
def test_opposed_groupings(one, other, expected):
    assert _opposed(np.array(one), np.array(other)) is expected
