"""Workers judged by gold in audits and reports."""

from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.audit import audit_crowd, judge_workers
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.part import NotApplicable


@pytest.fixture(scope="module")
def crowd():
    return simulate.crowd(
        200, 10 * simulate.OneCoinWorkers(8, 2), simulate.PerTask(4), random_state=1
    )


def gold_of(crowd, n, n_shared=0):
    """Return gold; on the first ``n_shared`` tasks all workers share an error."""
    gold = {crowd.labels.tasks[i]: int(crowd.truth[i]) for i in range(n)}
    return gold | {task: 1 - gold[task] for task in list(gold)[:n_shared]}


def test_the_part_is_the_estimate_by_checked_tasks(crowd):
    fit = wc.aggregation.OneCoin()._fit_without_checks(crowd.labels)
    gold = gold_of(crowd, 60)
    part = audit_crowd(crowd.labels, gold=gold, fit=fit, parts=["workers"])["workers"]
    expected = wc.truth.workers(crowd.labels, gold, fit=fit).columns
    assert list(part.tables()["workers"]) == list(expected)
    for name in ("accuracy", "low", "high"):
        np.testing.assert_array_equal(part.columns[name], expected[name])
    assert part.findings() == []
    assert part.n_gold == 60


def test_gold_that_contradicts_the_model_is_a_finding(crowd):
    audit = audit_crowd(crowd.labels, gold=gold_of(crowd, 80, 25), parts=["workers"])
    (finding,) = audit.findings
    assert finding.id == "gold-contradicts-model"
    assert finding.explanation.startswith("By 80 checked tasks the workers are right in ")


@pytest.mark.parametrize("gold", [None, 5])
def test_too_little_gold_is_a_reason_to_skip(crowd, gold):
    given = None if gold is None else gold_of(crowd, gold)
    with pytest.raises(NotApplicable, match="no known answers" if gold is None else "too few"):
        judge_workers(crowd.labels, gold=given)


def test_a_fit_that_saw_gold_is_refused(crowd):
    gold = gold_of(crowd, 40)
    fit = wc.aggregation.OneCoin().fit(crowd.labels, gold=gold)
    with pytest.raises(ParameterError, match="has seen gold"):
        audit_crowd(crowd.labels, gold=gold, fit=fit, parts=["workers"])


def test_a_report_with_gold_shows_corrected_accuracies_only(crowd):
    made = wc.report(crowd.labels, gold=gold_of(crowd, 80, 25))
    found = made.summary["workers"]
    assert found["n_checked"] == 80
    row = found["rows"][0]
    assert {"accuracy", "low", "high", "n_checked"} <= set(row)
    assert "agreement_with_result" not in row
    assert "gold-contradicts-model" in [step["id"] for step in made.summary["next"]]
    assert "is right in" in made.html
    assert "agrees with" not in made.html
    without = wc.report(crowd.labels).summary["workers"]
    assert "accuracy" not in without["rows"][0]
    assert without["n_checked"] == 0
