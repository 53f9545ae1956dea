"""The audit of ordered classes."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdLabels
from wisecrowd.audit import audit_crowd, clean
from wisecrowd.core.part import NotApplicable
from wisecrowd.kinds.ordered.audit import find_biased_graders, find_extreme_graders


def severe(data):
    return {found.id: found for found in audit_crowd(data).findings.at_least("medium")}


def test_an_honest_crowd_gets_no_finding(make_grades):
    audit = audit_crowd(make_grades())
    assert [found.id for found in audit.findings.at_least("medium")] == []
    assert audit["agreement"].level == "ordinal"
    assert audit["fit"].method == "AutoOrdered"


def test_a_lenient_worker_is_biased_and_not_a_spammer(make_grades):
    data = make_grades(change=lambda y, i, j, rng: np.where(j == 5, np.minimum(y + 2, 4), y))
    found = severe(data)
    assert set(found) == {"biased-workers", "judges-apart"}
    assert found["biased-workers"].affected == (5,)
    assert found["judges-apart"].affected == (5,)
    report = find_biased_graders(data)
    assert report.low[5] > 0.5
    assert not len(clean(data, ["spammers"]).removed)


def test_a_random_worker_is_a_spammer(make_grades):
    data = make_grades(change=lambda y, i, j, rng: np.where(j == 5, rng.integers(0, 5, len(y)), y))
    assert severe(data)["spammers"].affected == (5,)
    assert clean(data, ["spammers"]).removed.tolist() == [5]


def test_ends_of_the_scale(make_grades):
    data = make_grades(change=lambda y, i, j, rng: np.where(j == 5, np.where(y >= 2, 4, 0), y))
    report = find_extreme_graders(data)
    assert report.workers[report.extreme].tolist() == [5]
    middle = make_grades(change=lambda y, i, j, rng: np.where(j == 5, np.clip(y, 1, 3), y))
    report = find_extreme_graders(middle)
    assert report.workers[report.avoiding].tolist() == [5]
    assert not find_extreme_graders(make_grades()).extreme.any()


def test_two_classes_have_no_ends():
    labels = CrowdLabels.from_matrix(np.eye(4, dtype=int), classes=[0, 1])
    with pytest.raises(NotApplicable, match="two classes"):
        find_extreme_graders(labels)


def judged(seed, biases=(1.0, 0.0, 1.0)):
    """Return grades by three judges with biases, and the true grades of the first 40 tasks."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, 6, 120)
    task, worker = np.divmod(np.arange(360), 3)
    seen = truth[task] + np.array(biases)[worker] + rng.normal(0, 0.6, 360)
    label = np.clip(np.rint(seen), 0, 7).astype(int)
    labels = CrowdLabels.from_arrays(task, worker, label, classes=range(8), ordered=True)
    return labels, dict(enumerate(truth[:40].tolist()))


@pytest.mark.parametrize("seed", range(3))
def test_gold_tells_which_graders_are_high(seed):
    labels, gold = judged(seed)
    relative = find_biased_graders(labels)
    assert relative.workers[relative.biased].tolist() == [1]  # the others are the majority
    assert relative.n_gold == 0
    report = find_biased_graders(labels, gold=gold)
    assert report.workers[report.biased].tolist() == [0, 2]
    assert report.n_gold == 40
    np.testing.assert_allclose(report.bias, [1, 0, 1], atol=0.3)
    found = audit_crowd(labels, gold=gold, parts=["bias"]).findings
    assert sorted(worker for one in found for worker in one.affected) == [0, 2]
    for one in found:
        assert "(higher: " in one.explanation
        assert "lower" not in one.explanation
        assert "40 gold tasks" in one.explanation


def test_the_finding_says_who_is_high_and_who_is_low():
    labels, gold = judged(0, (1.0, -1.0, 0.0))
    few = dict(list(gold.items())[:9])  # too few to set the zero
    for known in (None, few):
        (found,) = audit_crowd(labels, gold=known, parts=["bias"]).findings
        assert "higher: 0; lower: 1" in found.explanation
        assert "median worker" in found.explanation
