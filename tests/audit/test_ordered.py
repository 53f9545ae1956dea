"""The audit of ordered classes."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdLabels
from wisecrowd.audit import audit_crowd, clean
from wisecrowd.audit.ordered_bias import find_biased_graders
from wisecrowd.audit.ordered_extremes import find_extreme_graders
from wisecrowd.audit.part import NotApplicable


def severe(data):
    return {found.id: found for found in audit_crowd(data).findings.at_least("medium")}


def test_an_honest_crowd_gets_no_finding(make_grades):
    audit = audit_crowd(make_grades())
    assert [found.id for found in audit.findings.at_least("medium")] == []
    assert audit["agreement"].level == "ordinal"
    assert audit["fit"].method == "Thresholds"


def test_a_lenient_worker_is_biased_and_not_a_spammer(make_grades):
    data = make_grades(change=lambda y, i, j, rng: np.where(j == 5, np.minimum(y + 2, 4), y))
    found = severe(data)
    assert set(found) == {"biased-workers"}
    assert found["biased-workers"].affected == (5,)
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
