from __future__ import annotations

import warnings

import pytest

from wisecrowd.core.exceptions import DoubtWarning, FindingWarning, ParameterError
from wisecrowd.core.findings import Finding, warn_of


def finding(severity="low", remedy="Do."):
    return Finding("x", severity, 0.5, ("w",), "Seen.", remedy)


def test_the_text_is_explanation_and_remedy():
    assert str(finding()) == "Seen. Do."
    assert str(finding(remedy="")) == "Seen."


def test_unknown_severity():
    with pytest.raises(ParameterError, match="severity is 'bad'; choose one of info, low"):
        finding("bad")


def test_only_medium_and_high_findings_are_warned_of():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of([finding(severity) for severity in ("info", "low", "medium", "high")], 1)
    assert [str(warning.message) for warning in caught] == ["Seen. Do."] * 2
    assert {warning.category for warning in caught} == {FindingWarning}
    assert {warning.filename for warning in caught} == {__file__}


def test_the_former_name_of_the_warning():
    assert DoubtWarning is FindingWarning
