from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError

HONEST = simulate.OneCoinWorkers(4, 2)


def dense_table(made: simulate.SimulatedCrowd) -> np.ndarray:
    return made.labels.label.reshape(made.labels.n_tasks, made.labels.n_workers)


def test_copiers_copy_the_sources_named():
    people = 3 * HONEST + 5 * simulate.Copiers(sources=(0, 0, 2, 2, 2))
    made = simulate.crowd(400, people, simulate.Dense(), n_classes=3)
    table = dense_table(made)
    np.testing.assert_array_equal(table[:, 3:], table[:, [0, 0, 2, 2, 2]])
    np.testing.assert_allclose(made.confusion[3:], made.confusion[[0, 0, 2, 2, 2]])
    assert not (table[:, 0] == table[:, 1]).all()


def test_partial_copying_and_its_confusion():
    own = simulate.FixedConfusion([[0.9, 0.1], [0.6, 0.4]])
    people = simulate.FixedConfusion([[0.6, 0.4], [0.2, 0.8]]) + simulate.Copiers(0.7, 0, own)
    made = simulate.crowd(60_000, people, simulate.Dense(), class_prior=[0.3, 0.7])
    expected = 0.7 * made.confusion[0] + 0.3 * own.matrices[0]
    np.testing.assert_allclose(made.confusion[1], expected)
    table = dense_table(made)
    for k in range(2):
        tasks = made.truth_codes == k
        assert (table[tasks, 1] == 1).mean() == pytest.approx(expected[k, 1], abs=0.01)
        chance = (made.confusion[0, k] * own.matrices[0, k]).sum()
        agreement = (table[tasks, 0] == table[tasks, 1]).mean()
        assert agreement == pytest.approx(0.7 + 0.3 * chance, abs=0.01)


def test_sparse_copiers_agree_with_the_source_and_with_one_another():
    people = 20 * HONEST + 20 * simulate.Copiers(sources=3)
    made = simulate.crowd(3000, people, simulate.PerTask(10), n_classes=4)
    labels = made.labels
    follows = (labels.worker == 3) | (labels.worker >= 20)
    lowest, highest = np.full(3000, 9), np.full(3000, -1)
    np.minimum.at(lowest, labels.task[follows], labels.label[follows])
    np.maximum.at(highest, labels.task[follows], labels.label[follows])
    heard = highest >= 0
    assert heard.sum() > 2500
    np.testing.assert_array_equal(lowest[heard], highest[heard])
    # Also on tasks that worker 3 did not label, the copies are as good as worker 3.
    copied = labels.worker >= 20
    right = (labels.label == made.truth_codes[labels.task])[copied].mean()
    assert right == pytest.approx(made.worker_accuracy[3], abs=0.03)


def test_sources_are_drawn_among_those_who_draw_alone():
    people = 2 * simulate.Copiers() + 3 * HONEST + 2 * simulate.Colluders()
    table = dense_table(simulate.crowd(500, people, simulate.Dense(), n_classes=3))
    for copier in range(2):
        assert sum((table[:, copier] == table[:, j]).all() for j in (2, 3, 4)) == 1


def test_colluders_share_one_wrong_label_per_task():
    people = 10 * HONEST + 6 * simulate.Colluders(0.9)
    made = simulate.crowd(20_000, people, simulate.Dense(), n_classes=3)
    table = dense_table(made)
    group = table[:, 10:]
    wrong = group != made.truth_codes[:, None]
    # Of the two wrong labels, the group's is taken with .9 + .1 (1 - p) / 2.
    both = wrong[:, 0] & wrong[:, 1]
    own_wrong = 1 - np.einsum("jkk->j", simulate_own(made)) / 3
    follow = 0.9 + 0.1 * own_wrong / 2
    other = 0.1 * own_wrong / 2
    expected = (follow[0] * follow[1] + other[0] * other[1]) / (
        (follow[0] + other[0]) * (follow[1] + other[1])
    )
    agreement = (group[both, 0] == group[both, 1]).mean()
    assert agreement == pytest.approx(expected, abs=0.01)
    np.testing.assert_allclose(
        [(~wrong[:, j]).mean() for j in range(6)], made.worker_accuracy[10:], atol=0.01
    )
    counts = np.bincount((group[wrong] - np.repeat(made.truth_codes, 6)[wrong.ravel()]) % 3)
    np.testing.assert_allclose(counts[1:] / counts.sum(), 0.5, atol=0.02)


def simulate_own(made: simulate.SimulatedCrowd) -> np.ndarray:
    """Undo the collusion in the true matrices of the last six workers."""
    shared = (1 - np.eye(3)) / 2
    return (made.confusion[10:] - 0.9 * shared) / 0.1


def test_two_groups_of_colluders_agree_on_different_labels():
    people = HONEST + 2 * simulate.Colluders(1.0) + 2 * simulate.Colluders(1.0)
    table = dense_table(simulate.crowd(1000, people, simulate.Dense(), n_classes=5))
    assert (table[:, 1] == table[:, 2]).all()
    assert (table[:, 3] == table[:, 4]).all()
    assert (table[:, 1] == table[:, 3]).mean() == pytest.approx(1 / 4, abs=0.05)


@pytest.mark.parametrize(
    ("people", "message"),
    [
        (3 * simulate.Copiers(), "nobody to copy"),
        (2 * HONEST + 3 * simulate.Copiers(sources=(0, 1)), "2 workers for 3 copiers"),
        (2 * HONEST + simulate.Copiers(sources=2), "names worker 2"),
        (2 * HONEST + simulate.Copiers(sources=99), "names worker 99"),
    ],
)
def test_sources_that_cannot_be(people, message):
    with pytest.raises(ParameterError, match=message):
        simulate.crowd(5, people, simulate.Dense())


def test_bad_parameters():
    with pytest.raises(ParameterError, match=r"^p is "):
        simulate.Copiers(2)
    with pytest.raises(ParameterError, match=r"^sources is "):
        simulate.Copiers(sources=-1)
    with pytest.raises(ParameterError, match="`own`"):
        simulate.Copiers(own=simulate.Copiers())
    with pytest.raises(ParameterError, match="`own`"):
        simulate.Colluders(own=0.5)
    with pytest.raises(ParameterError, match="at least 2 classes"):
        simulate.crowd(3, HONEST + simulate.Colluders(), n_classes=1)


def test_labels_follow_the_group_and_the_published_matrices():
    source = np.array([[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])
    report = np.array([[0.9, 0.1, 0.0], [0.0, 0.8, 0.2], [0.1, 0.0, 0.9]])
    group = simulate.DependentGroup(
        simulate.FixedConfusion(source), simulate.FixedConfusion(report)
    )
    made = simulate.crowd(30_000, 2 * group, simulate.Dense(), n_classes=3, random_state=1)
    np.testing.assert_allclose(made.confusion, np.tile(source @ report, (2, 1, 1)))
    table = made.labels.label.reshape(-1, 2)
    for k in range(3):
        here = table[made.truth_codes == k]
        joint = np.zeros((3, 3))
        np.add.at(joint, (here[:, 0], here[:, 1]), 1 / len(here))
        exact = np.einsum("c,cl,cm->lm", source[k], report, report)
        np.testing.assert_allclose(joint, exact, atol=0.02)
        assert np.abs(exact - np.outer(exact.sum(1), exact.sum(0))).max() > 0.05  # dependent


def test_each_mention_is_a_group_of_its_own():
    faithful = simulate.FixedConfusion(np.eye(2))
    group = simulate.DependentGroup(members=faithful)
    made = simulate.crowd(400, 2 * group + 2 * group, simulate.Dense(), n_classes=2)
    table = made.labels.label.reshape(-1, 4)
    assert (table[:, 0] == table[:, 1]).all()
    assert (table[:, 2] == table[:, 3]).all()
    assert (table[:, 0] != table[:, 2]).any()


def test_parts_must_draw_their_own_labels():
    with pytest.raises(ParameterError, match="own"):
        simulate.DependentGroup(source=simulate.Copiers())
