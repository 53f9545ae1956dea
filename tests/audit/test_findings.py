from __future__ import annotations

import json

import numpy as np
import pytest

from wisecrowd.audit import Finding, Findings
from wisecrowd.core.exceptions import ParameterError


def finding(severity="low", score=0.5, name="x", affected=("w",)):
    return Finding(name, severity, score, affected, "Seen.", "Do.")


def test_most_severe_first_then_score_then_name():
    given = [finding("low", 0.9), finding("high", 0.1), finding("high", 0.1, "a"), finding("info")]
    found = Findings(given)
    assert [(f.severity, f.id) for f in found] == [
        ("high", "a"), ("high", "x"), ("low", "x"), ("info", "x"),
    ]  # fmt: skip
    assert len(found.at_least("low")) == 3
    assert len(found[:2]) == 2
    assert isinstance(found[:2], Findings)
    assert found.at_least("high")[1].id == "x"


def test_plain_data():
    found = Findings([finding(score=np.float64(0.25), affected=(np.int64(3), "é"))])
    assert json.loads(json.dumps(found.to_dict()))["findings"] == [
        {
            "id": "x", "severity": "low", "score": 0.25, "affected": [3, "é"],
            "explanation": "Seen.", "remedy": "Do.",
        }
    ]  # fmt: skip


def test_unknown_severity():
    with pytest.raises(ParameterError, match="severity is 'bad'; choose one of info, low"):
        finding("bad")
    with pytest.raises(ParameterError, match="severity"):
        Findings().at_least("worst")
