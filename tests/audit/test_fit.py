"""What a fit warns of is found by an audit as well."""

from __future__ import annotations

import warnings

import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import DawidSkene
from wisecrowd.audit import audit_crowd, check_fit
from wisecrowd.core.exceptions import WisecrowdWarning

OPPOSED = 13 * simulate.OneCoinWorkers(8, 2) + 7 * simulate.Adversaries(0.2)


def test_findings_say_what_the_warning_says():
    labels = simulate.crowd(500, OPPOSED).labels
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        audit = audit_crowd(labels, parts=["fit"])
    (finding,) = audit.findings
    assert (finding.id, finding.severity) == ("adversarial-majority", "high")
    assert set(finding.affected) == set(range(13, 20))
    with pytest.warns(WisecrowdWarning) as told:
        DawidSkene().fit(labels)
    assert [str(w.message) for w in told] == [f"{finding.explanation} {finding.remedy}"]


def test_a_fit_that_was_cut_off():
    labels = simulate.crowd(300, 20 * simulate.OneCoinWorkers()).labels
    short = DawidSkene(max_iter=2).fit(labels)
    assert [found.id for found in check_fit(labels, fit=short).findings()] == ["not-converged"]
    assert check_fit(labels).to_dict() == {"method": "Auto", "cautions": []}
