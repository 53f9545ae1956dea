"""Groups of copies, complete or not, found and counted once."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.audit import clean, collapse_clones, find_clones
from wisecrowd.audit.clones import Clones
from wisecrowd.audit.part import NotApplicable
from wisecrowd.core.labels import CrowdLabels


def plot(seed=0, n_tasks=1000, per_task=8):
    """18 honest workers, and 12 who give the labels of one random sheet, with slips."""
    workers = 18 * simulate.OneCoinWorkers(6, 2) + 1 * simulate.Spammers()
    workers = workers + 11 * simulate.Copiers(0.95, sources=18)
    return simulate.crowd(n_tasks, workers, simulate.PerTask(per_task), random_state=seed)


def right(labels, truth):
    return float(np.mean(DawidSkene()._fit_without_checks(labels).labels_ == truth))


@pytest.mark.parametrize("seed", range(3))
def test_copies_with_slips_on_some_tasks_are_one_group(seed):
    made = plot(seed)
    found = find_clones(made.labels)
    assert [group.tolist() for group in found.groups] == [list(range(18, 30))]
    assert found.findings()[0].affected == tuple(range(18, 30))
    assert found.agreement[0] == pytest.approx(0.95, abs=0.02)  # .95² + .05² + half of the rest
    assert found.expected[0] == pytest.approx(0.5, abs=0.05)  # two random sheets


@pytest.mark.parametrize("seed", range(3))
def test_counting_them_once_saves_the_labels(seed):
    made = plot(seed)
    vote = float(np.mean(MajorityVote()._fit_without_checks(made.labels).labels_ == made.truth))
    after = collapse_clones(made.labels)
    assert after.removed.tolist() == list(range(19, 30))
    assert right(made.labels, made.truth) < vote < right(after.labels, made.truth)
    assert right(after.labels, made.truth) > 0.88


@pytest.mark.parametrize(
    "workers",
    [
        20 * simulate.OneCoinWorkers(6, 2),
        12 * simulate.OneCoinWorkers(3, 2) + 8 * simulate.OneCoinWorkers(60, 1),  # experts
        12 * simulate.OneCoinWorkers(6, 2) + 8 * simulate.Spammers(),
    ],
)
def test_nobody_else_is_accused(workers):
    for seed in range(3):
        labels = simulate.crowd(600, workers, simulate.PerTask(6), random_state=seed).labels
        assert find_clones(labels).groups == []


def test_a_group_says_what_most_of_it_say():
    labels = CrowdLabels.from_arrays(
        ["a", "a", "a", "a", "b", "b", "c"], [0, 1, 2, 3, 1, 2, 3], [0, 1, 1, 0, 0, 1, 1],
        timestamp=[7, 6, 5, 4, 3, 2, 1],
    )  # fmt: skip
    some = np.ones(1)
    clones = Clones(labels.workers, np.array([0, 0, 0, -1], np.int32), some, some, some)
    after = collapse_clones(labels, clones).labels
    assert after.to_dict()["task"].tolist() == ["a", "a", "b", "c"]
    assert after.to_dict()["worker"].tolist() == [0, 3, 0, 3]
    assert after.to_dict()["label"].tolist() == [1, 0, 0, 1]  # two of three; a draw: the first
    assert after.to_dict()["timestamp"].tolist() == [6, 4, 3, 1]


def test_clean_takes_copies_before_colluders():
    made = plot(2, 2000)
    after = clean(made.labels, ["collusion", "clones"])
    assert set(after.removed.tolist()) >= set(range(19, 30))
    assert right(after.labels, made.truth) > 0.88


def test_nothing_to_compare():
    with pytest.raises(NotApplicable, match="share 5 tasks"):
        find_clones(CrowdLabels.from_matrix([[0, 1], [1, 0]]))


@pytest.mark.parametrize("others", ["6*spammers", "3*spammers + 3*colluders", "8*colluders"])
@pytest.mark.parametrize("seed", range(3))
def test_experts_are_no_copies_whoever_else_there_is(others, seed):
    crowd = simulate.crowd(
        200, f"8*one-coin:20,1 + {others}", simulate.PerTask(8), n_classes=3, random_state=seed
    )
    accused = np.concatenate([[], *find_clones(crowd.labels).groups])
    assert not np.isin(accused, np.arange(8)).any()
