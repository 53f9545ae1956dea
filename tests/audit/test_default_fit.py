"""Which fit a part of an audit works with, and that parts share one."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import GLAD, Auto, DawidSkene, MajorityVote
from wisecrowd.audit.confidence import measure_confidence
from wisecrowd.audit.crowd_audit import audit_crowd
from wisecrowd.audit.default_fit import fit_or_default, fit_with_law
from wisecrowd.audit.drift import find_drift
from wisecrowd.audit.label_distribution import find_label_outliers


@pytest.fixture(scope="module")
def labels():
    workers = 8 * simulate.OneCoinWorkers(8, 2)
    return simulate.crowd(150, workers, simulate.PerTask(5), n_classes=3).labels


@pytest.fixture
def default_fits(monkeypatch):
    """Crowds to which the default method is fitted."""
    seen, fit = [], Auto._fit_without_checks
    monkeypatch.setattr(
        Auto, "_fit_without_checks", lambda model, data: seen.append(data) or fit(model, data)
    )
    return seen


def test_a_given_fit_is_kept_where_it_serves(labels, default_fits):
    vote, glad = MajorityVote().fit(labels), GLAD().fit(labels)
    other = DawidSkene(max_iter=3).fit(labels)
    assert fit_or_default(labels, vote) is vote
    assert fit_with_law(labels, glad) is glad
    assert fit_with_law(labels, vote, other) is other
    assert default_fits == []
    assert isinstance(fit_with_law(labels, vote), Auto)
    assert isinstance(fit_or_default(labels, None), Auto)
    assert default_fits == [labels, labels]


def test_an_audit_of_a_vote_shares_one_fit_with_a_law(labels, default_fits):
    parts = ["spammers", "label-distribution", "identifiability", "confidence"]
    vote = MajorityVote().fit(labels)
    found = audit_crowd(labels, fit=vote, parts=parts)
    assert sum(data is labels for data in default_fits) == 1
    assert found["confidence"].mean_confidence == pytest.approx(vote.confidence_.mean())
    plain = audit_crowd(labels, parts=["spammers"])
    np.testing.assert_array_equal(found["spammers"].capacity, plain["spammers"].capacity)


def test_a_given_source_is_used_instead_of_another_fit(labels, default_fits):
    source = DawidSkene().fit(labels)
    found = measure_confidence(labels, source=source)
    assert default_fits == []
    assert found.mean_confidence == pytest.approx(source.confidence_.mean())


def test_parts_accept_fits_without_confusion_matrices(labels):
    table = labels.to_dict()
    timed = type(labels).from_arrays(
        table["task"], table["worker"], table["label"], timestamp=table["task"]
    )
    for method in (GLAD, MajorityVote):
        fit = method().fit(timed)
        assert find_drift(timed, fit=fit).findings() == []
        assert find_label_outliers(timed, fit=fit).findings() == []
