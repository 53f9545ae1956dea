"""The audit of pairs."""

from __future__ import annotations

import json

import numpy as np
import pytest

from wisecrowd import CrowdPairs
from wisecrowd.aggregation import BradleyTerry
from wisecrowd.audit import audit_crowd, clean
from wisecrowd.core.part import NotApplicable
from wisecrowd.kinds.pairs.audit.consistency import (
    check_connectivity,
    find_contradictions,
    find_cycles,
)
from wisecrowd.kinds.pairs.audit.view import pair_view
from wisecrowd.kinds.pairs.audit.voters import find_bad_voters, find_side_bias


def severe(data):
    return {found.id: found for found in audit_crowd(data).findings.at_least("medium")}


def test_an_honest_crowd_gets_no_finding(make_votes):
    assert [list(severe(make_votes(seed))) for seed in range(4)] == [[]] * 4


CHANGES = {
    "adversaries": lambda v, a, b, j, rng: np.where(j == 3, -v, v),
    "random-voters": lambda v, a, b, j, rng: np.where(j == 3, rng.choice([-1, 1], len(v)), v),
    "side-clickers": lambda v, a, b, j, rng: np.where(j == 3, 1, v),
    "tie-clickers": lambda v, a, b, j, rng: np.where(j == 3, 0, v),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_worker_is_named(make_votes, name):
    found = severe(make_votes(per_worker=200, change=CHANGES[name]))
    assert found[name].affected == (3,)


def test_side_bias_of_the_crowd(make_votes):
    def prefer_left(vote, left, right, worker, rng):
        return np.where(rng.random(len(vote)) < 0.25, 1, vote)

    report = find_side_bias(make_votes(change=prefer_left))
    assert 0 < report.low < report.bias < report.high
    assert report.findings()[0].id == "side-bias"
    mirrored = find_side_bias(make_votes(change=prefer_left).mirrored())
    assert mirrored.bias == pytest.approx(-report.bias, abs=1e-6)


def test_chosen_and_rejected_have_no_sides(make_votes):
    data = make_votes()
    won = np.where(data.outcome == 0, data.left, data.right)
    lost = np.where(data.outcome == 0, data.right, data.left)
    chosen = CrowdPairs.from_arrays(None, data.worker, won, lost, np.zeros(len(won), int))
    with pytest.raises(NotApplicable, match="chosen and rejected"):
        find_side_bias(chosen)
    assert not severe(chosen)


def test_gaps_leave_out_the_worker(make_votes):
    """The Newton step is close to a fit without the worker's votes."""
    data = make_votes(n_items=8, n_workers=6, per_worker=60)
    view = pair_view(data)
    for worker in range(6):
        rest = BradleyTerry(side=True).fit(data.select_annotations(data.worker != worker))
        mine = data.worker == worker
        exact = rest.scores_[data.left[mine]] - rest.scores_[data.right[mine]]
        full = view.scores[data.left[mine]] - view.scores[data.right[mine]]
        error = np.abs(view.gap[mine] - exact).mean()
        assert error < 0.5 * np.abs(full - exact).mean()


def test_reliability_is_that_of_the_simulation(make_votes):
    """Voters who turn a share q of their votes have the slope 1 - 2 q."""

    def turned(vote, left, right, worker, rng):
        return np.where(rng.random(len(vote)) < 0.3 * (worker == 3), -vote, vote)

    report = find_bad_voters(make_votes(per_worker=2000, change=turned))
    assert report.reliability[3] / np.median(report.reliability) == pytest.approx(0.4, abs=0.08)


def test_contradictions_need_the_same_task():
    left, right, outcome = ["x"] * 4, ["y"] * 4, [0, 1, 0, 1]
    same = CrowdPairs.from_arrays(None, ["a"] * 4, left, right, outcome)
    report = find_contradictions(same)
    assert (report.n_repeats, report.n_opposite) == (6, 4)
    prompts = CrowdPairs.from_arrays(["p", "q", "r", "s"], ["a"] * 4, left, right, outcome)
    with pytest.raises(NotApplicable, match="no worker compared a pair twice"):
        find_contradictions(prompts)


def test_swapped_sides_are_not_a_contradiction():
    votes = CrowdPairs.from_arrays(None, ["a", "a"], ["x", "y"], ["y", "x"], [0, 1])
    assert find_contradictions(votes).n_opposite == 0


def test_cycles_by_hand():
    votes = CrowdPairs.from_arrays(
        None, None, list("xyzxyx"), list("yzxwwz"), ["left", "left", "left", "left", "left", "tie"]
    )
    report = find_cycles(votes)  # x > y > z > x; w loses to x and y
    assert (report.n_cycles, report.n_triples) == (1, 2)


def test_items_on_a_circle(make_votes):
    def circle(vote, left, right, worker, rng):
        ahead = np.where((right - left) % 15 < 8, 1, -1)
        return np.where(rng.random(len(vote)) < 0.85, ahead, vote)

    assert "cycles" in severe(make_votes(per_worker=300, change=circle))


def test_separate_items_are_named():
    votes = CrowdPairs.from_arrays(
        None, None, list("aabxx") * 3, list("bccyz") * 3, [0, 1, 0, 0, 1] * 3, items=list("abcxyzq")
    )
    found = {one.id: one for one in check_connectivity(votes).findings()}
    assert set(found["separate-items"].affected) in ({"x", "y", "z"}, {"a", "b", "c"})
    assert found["items-without-votes"].affected == ("q",)


def test_few_comparisons_are_named():
    votes = CrowdPairs.from_arrays(None, None, list("aab"), list("bcc"), [0, 1, 0])
    (found,) = check_connectivity(votes).findings()
    assert (found.id, found.severity) == ("few-comparisons", "medium")


@pytest.mark.parametrize(
    "columns",
    [
        (["x"], ["y"], ["left"]),
        (["x"] * 5, ["y"] * 5, ["tie"] * 5),
        (["x", "a"], ["y", "b"], ["left", "right"]),
        (["x"] * 30, ["y"] * 30, ["left"] * 30),
    ],
    ids=["one vote", "ties", "disconnected", "one-sided"],
)
def test_degenerate_votes(columns):
    data = CrowdPairs.coerce(columns)
    json.dumps(audit_crowd(data).to_dict(), allow_nan=False)


def test_row_order_does_not_matter(make_votes):
    data = make_votes(change=CHANGES["adversaries"])
    table = data.to_dict()
    order = np.random.default_rng(0).permutation(data.n_annotations)
    names = ("worker", "left", "right", "outcome")
    mixed = CrowdPairs.from_arrays(None, *(table[name][order] for name in names))
    one, two = (find_bad_voters(d, pruning=False) for d in (data, mixed))
    assert np.allclose(one.reliability, two.reliability)
    assert np.array_equal(one.against, two.against)


def test_pruning_removes_the_adversary(make_votes):
    pruned = clean(make_votes(change=CHANGES["adversaries"]), ["spammers"])
    assert pruned.removed.tolist() == [3]
    assert pruned.labels.n_annotations == 9 * 120
    assert set(pruned.changes) == {"item", "score_before", "score_after"}
