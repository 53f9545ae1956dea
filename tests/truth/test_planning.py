"""Plans: questions with and without a pilot."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.truth import plan


@pytest.fixture(scope="module")
def crowd():
    workers = 8 * simulate.OneCoinWorkers(7, 3)
    return simulate.crowd(400, workers, simulate.PerTask(3), classes=["no", "yes"], random_state=1)


@pytest.fixture(scope="module")
def fit(crowd):
    return wc.aggregation.MajorityVote()._fit_without_checks(crowd.labels)


def first(crowd, n):
    return dict(enumerate(crowd.truth[:n].tolist()))


def test_usual_questions_without_a_pilot():
    found = plan()
    assert list(found.columns) == ["question", "given", "needed", "low", "high", "assumption"]
    assert found.columns["needed"].tolist() == [43, 165, 454, 146, 73]
    assert found.columns["low"][1] < 165 < found.columns["high"][1]
    assert "85% of the labels are right" in found.columns["assumption"][0]
    assert found.table("pyarrow").num_rows == 5


def test_a_pilot_replaces_the_accuracy(crowd, fit):
    known = first(crowd, 60)
    found = plan(crowd.labels, known, width=0.05, separate=0.3, fit=fit).columns
    right = np.mean(fit.labels_[:60] == crowd.truth[:60])
    n = 0.83 * 1.959964**2 * right * (1 - right) / 0.05**2 + 2
    assert found["needed"][0] == np.ceil(n / (1 + n / 400))
    assert found["low"][0] < found["needed"][0] < found["high"][0]
    assert "60 tasks of a pilot; 400 tasks in all" in found["assumption"][0]


def test_a_width_alone_plans_all_that_a_pilot_can_tell(crowd, fit):
    found = plan(crowd.labels, first(crowd, 60), width=0.05, fit=fit).columns
    assert found["question"].tolist() == [
        "tasks to check", "judgements per system", *["share right of a vote"] * 3,
    ]  # fmt: skip
    assert found["given"][1] == "difference 0.1, power 80%"


def test_weights_of_a_check_list_count(crowd, fit):
    wrong = np.flatnonzero(fit.labels_ != crowd.truth)[:10]
    good = np.flatnonzero(fit.labels_ == crowd.truth)[:20]
    rows = np.concatenate([wrong, good])
    frame = pd.DataFrame({
        "task": rows, "label": crowd.truth[rows], "stratum": np.repeat([1, 2], [10, 20]),
        "weight": np.repeat([4.0, 18.0], [10, 20]),
    })  # fmt: skip
    found = plan(crowd.labels, frame, width=0.05, separate=0.3, fit=fit).columns
    assert found["assumption"][0].startswith("90% of the labels are right")


def test_systems_on_the_same_texts():
    rng = np.random.default_rng(0)
    n = 150
    base = rng.normal(size=n)
    y = np.concatenate([base, base + 0.2]) + rng.normal(scale=0.5, size=2 * n)
    said = y + rng.normal(scale=0.3, size=2 * n)
    numbers = wc.CrowdNumbers.from_arrays(np.arange(2 * n), ["ann"] * (2 * n), said)
    known = {i: y[i] for part in (0, n) for i in range(part, part + 60)}
    fit = wc.aggregation.Mean()._fit_without_checks(numbers)
    system, text = np.repeat(["a", "b"], n), np.tile(np.arange(n), 2)
    asked = {"separate": 0.2, "fit": fit, "by": system}
    paired = plan(numbers, known, cluster=text, **asked).columns
    wide = {**asked, "separate": 0.4}
    apart = plan(numbers, known, **wide).columns
    assert plan(numbers, known, cluster=text, **wide).columns["needed"][0] < apart["needed"][0]
    assert paired["low"][0] <= paired["needed"][0]
    d = y[:60] - y[n : n + 60]
    f = said[:60] - said[n : n + 60]
    rho, k = np.corrcoef(d, f)[0, 1], (1.959964 + 0.841621) ** 2 * d.var(ddof=1)
    expected = k * (1 - rho**2) / (0.04 - k * rho**2 / n)
    assert paired["needed"][0] == np.ceil(expected)
    few = plan(numbers, known, separate=0.02, fit=fit, by=system, cluster=text).columns
    assert np.isnan(few["needed"][0])
    assert "too few, so label more of them first" in few["assumption"][0]
    with pytest.raises(DataError, match="0 texts have known answers for two systems"):
        plan(numbers, known, cluster=np.arange(2 * n), **asked)


def test_without_a_pilot_answers_vary_as_much_as_they_can():
    assert plan(separate=0.1).columns["needed"].tolist() == [393]


def test_votes_with_and_without_known_answers(crowd, fit):
    found = plan(crowd.labels, first(crowd, 80), labels_per_task=[3, 9], fit=fit).columns
    assert found["question"].tolist() == ["share right of a vote"] * 2
    assert 0.5 < found["needed"][0] < found["needed"][1] < 1
    blind = plan(crowd.labels, labels_per_task=[3, 9]).columns
    assert blind["question"].tolist() == ["share of votes that change"] * 2
    assert blind["needed"][0] == 0


def test_width_of_a_mean(crowd):
    rng = np.random.default_rng(0)
    y = rng.normal(size=500)
    numbers = wc.CrowdNumbers.from_arrays(np.arange(500), ["ann"] * 500, y)
    fit = wc.aggregation.Mean()._fit_without_checks(numbers)
    known = dict(enumerate((y + rng.normal(size=500))[:100].tolist()))
    found = plan(numbers, known, width=0.2, fit=fit).columns
    both = np.array(list(known.values()))
    rest = both.var(ddof=1) * (1 - np.corrcoef(both, y[:100])[0, 1] ** 2)
    n = 1.959964**2 * rest / 0.04 + 2
    assert found["needed"][0] == np.ceil(n / (1 + n / 500))


def test_what_cannot_be_planned_is_refused(crowd, fit):
    known = first(crowd, 40)
    with pytest.raises(ParameterError, match="known is given without labels"):
        plan(known=known)
    with pytest.raises(ParameterError, match="Votes can be planned from a pilot only"):
        plan(labels_per_task=3)
    with pytest.raises(ParameterError, match=r"below 0\.5"):
        plan(width=0.7)
    with pytest.raises(ParameterError, match=r"measured for epsilon 0\.1 and 0\.15"):
        plan(epsilon=0.3)
    with pytest.raises(DataError, match="9 known answers are too few"):
        plan(crowd.labels, first(crowd, 9), width=0.05, fit=fit)
    seen = wc.aggregation.MajorityVote().fit(crowd.labels, gold=known)
    with pytest.raises(ParameterError, match="has seen gold"):
        plan(crowd.labels, known, width=0.05, fit=seen)
    numbers = wc.CrowdNumbers.from_arrays([1, 2], ["ann", "bob"], [1.0, 2.0])
    with pytest.raises(DataError, match="Votes are planned for classes"):
        plan(numbers, labels_per_task=3)
