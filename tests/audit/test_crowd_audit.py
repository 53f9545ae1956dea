from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from wisecrowd import CrowdLabels, simulate
from wisecrowd.aggregation import Auto, DawidSkene
from wisecrowd.audit import Findings, audit_crowd, crowd_audit
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.kinds import all_kinds, get_kind
from wisecrowd.core.part import NotApplicable, Part
from wisecrowd.core.registry import get_method
from wisecrowd.kinds.classes.audit.plan import PLAN as CLASSES


@pytest.fixture(scope="module")
def labels():
    population = 8 * simulate.OneCoinWorkers(8, 2) + 2 * simulate.Spammers()
    return simulate.crowd(300, population, n_classes=3, random_state=1).labels


def test_every_part_runs_or_says_what_it_lacks(labels):
    audit = audit_crowd(labels)
    assert set(audit.parts) | set(audit.skipped) == set(CLASSES.parts)
    assert not set(audit.parts) & set(audit.skipped)
    assert {"spammers", "identifiability"} <= set(audit.parts)
    assert audit["spammers"].workers[audit["spammers"].accused].tolist() == [8, 9]
    every = [found for part in audit.parts.values() for found in part.findings()]
    assert len(audit.findings) == len(every)
    assert audit.findings[0].severity == "medium"
    document = json.loads(json.dumps(audit.to_dict(), allow_nan=False))
    assert document["n_workers"] == 10
    assert set(document["parts"]) == set(audit.parts)
    tables = [table for part in audit.parts.values() for table in part.tables().items()]
    assert set(audit.tables()) == {name for name, _ in tables}
    for name, table in tables:  # parts that share a table's name share the table
        for column, values in audit.tables()[name].items():
            np.testing.assert_array_equal(values, table[column])
    for table in audit.tables().values():
        assert len({len(column) for column in table.values()}) == 1


def use_parts(monkeypatch, functions):
    """Replace the parts of an audit of classes."""
    plan = replace(CLASSES, parts=functions)
    monkeypatch.setattr(crowd_audit, "plan_of", lambda data: plan)


def test_parts_get_what_they_name_and_share_one_fit(labels, monkeypatch):
    seen = {}

    class Nothing(Part):
        def findings(self):
            return [Finding("seen", "info", 0, (), "Seen.", "Nothing.")]

    def greedy(given, *, gold=None, fit=None, random_state=None, extra=0):
        seen["greedy"] = (given, gold, fit, random_state, extra)
        return Nothing()

    def frugal(given):
        seen["frugal"] = given
        return Nothing()

    def other(given, *, fit=None):
        seen["other"] = fit
        return Nothing()

    functions = {"greedy": greedy, "frugal": frugal, "other": other}
    use_parts(monkeypatch, functions)
    gold = {0: 1}
    audit_crowd(labels, gold=gold, random_state=7, options={"greedy": {"extra": 5}})
    given, got_gold, fit, seed, extra = seen["greedy"]
    assert (given, got_gold, seed, extra) == (labels, gold, 7, 5)
    assert seen["frugal"] is labels
    assert seen["other"] is fit
    assert np.array_equal(fit.probas_, Auto().fit(labels).probas_)
    own = DawidSkene(max_iter=1).fit(labels)
    audit_crowd(labels, fit=own)
    assert seen["other"] is own
    del seen["other"]
    audit_crowd(labels, parts=["frugal"])
    assert "other" not in seen


def test_options_take_precedence_and_errors_can_skip_a_part(labels, monkeypatch):
    seen = {}

    def greedy(given, *, fit=None, random_state=None):
        seen["greedy"] = (fit, random_state)
        return "found"

    def fails(given):
        raise DataError("There are no timestamps.")

    functions = {"fails": fails, "greedy": greedy}
    use_parts(monkeypatch, functions)
    shared = crowd_audit.Shared(labels, gold=None, fit=None, random_state=7)
    given = labels, functions, shared, {"greedy": {"fit": "own"}}
    found = crowd_audit.run_parts(*given, skip_on=(DataError,))
    assert found.skipped == {"fails": "There are no timestamps."}
    assert found.parts == {"greedy": "found"}
    assert seen["greedy"] == ("own", 7)
    assert not shared._made  # nobody needed the fit
    with pytest.raises(DataError, match="timestamps"):
        crowd_audit.run_parts(*given)


def test_skipped_part_is_explained(labels, monkeypatch):
    def fails(given):
        raise NotApplicable("There are no timestamps.")

    use_parts(monkeypatch, {"drift": fails})
    audit = audit_crowd(labels)
    assert dict(audit.skipped) == {"drift": "There are no timestamps."}
    with pytest.raises(KeyError, match="no timestamps"):
        audit["drift"]


def test_unknown_part(labels):
    with pytest.raises(ParameterError, match="did you mean 'spammers'"):
        audit_crowd(labels, parts=["spamers"])
    with pytest.raises(ParameterError, match="no audit part 'x'"):
        audit_crowd(labels, options={"x": {}})
    with pytest.raises(KeyError, match="no part 'x'"):
        audit_crowd(labels, parts=["spammers"])["x"]


@pytest.mark.parametrize(
    "labels",
    [
        CrowdLabels.from_arrays(["t"], ["w"], ["a"]),
        CrowdLabels.from_arrays(["t", "u"], ["w", "w"], ["a", "b"]),
        CrowdLabels.from_matrix([[0, 0], [0, 0]]),
    ],
    ids=["one label", "one worker", "one class"],
)
def test_hardly_any_labels(labels):
    json.dumps(audit_crowd(labels).to_dict(), allow_nan=False)


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
            "explanation": "Seen.", "remedy": "Do.", "examples": [],
        }
    ]  # fmt: skip


def test_unknown_severity():
    with pytest.raises(ParameterError, match="severity"):
        Findings().at_least("worst")


AUDITED = [name for name, kind in all_kinds().items() if kind.has_part("audit.plan")]


@pytest.mark.parametrize("name", AUDITED)
def test_an_audit_says_that_all_labels_are_by_one_worker(name):
    kind = get_kind(name)
    crowd = kind.example_crowd(get_method(kind.default_method))
    data = crowd.select_annotations(crowd.worker == crowd.worker[0])
    found = audit_crowd(data, parts=[]).findings
    assert [(one.id, one.severity) for one in found] == [("one-worker", "medium")]
    assert not audit_crowd(crowd, parts=[]).findings


def test_one_worker_with_known_answers_can_be_judged():
    data = CrowdLabels.from_arrays(list("abcd"), ["ann"] * 4, ["x", "y", "x", "y"])
    assert audit_crowd(data, parts=[]).findings
    assert not audit_crowd(data, gold={"a": "x"}, parts=[]).findings
