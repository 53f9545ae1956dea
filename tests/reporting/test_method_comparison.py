from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wisecrowd import metrics
from wisecrowd.aggregation import Auto, MajorityVote, Wawa
from wisecrowd.reporting.document import render
from wisecrowd.reporting.method_comparison import calibration, methods_compared
from wisecrowd.reporting.study import study_crowd


def test_agreement_and_accuracy_of_methods(study, truth):
    found = methods_compared(study)
    vote = MajorityVote().fit(study.labels)
    n = found["names"].index("majority-vote")
    assert found["names"][0] == "auto"
    assert found["agreement"][0][n] == pytest.approx(
        np.mean(study.fit.labels_ == vote.labels_), abs=1e-4
    )
    assert found["accuracy"][n]["value"] == pytest.approx(vote.score(study.labels, truth))
    table = np.array(found["agreement"])
    assert np.array_equal(table, table.T)
    assert (np.diag(table) == 1).all()


@pytest.mark.parametrize("method", ["auto", "majority-vote"])
def test_members_of_the_default_method_are_not_fitted_twice(study, labels, monkeypatch, method):
    if method != study.method:
        study = study_crowd(labels, method=method)  # its audit uses the default method
    expected = Wawa().fit(labels).labels_
    monkeypatch.setattr(Wawa, "fit", lambda *_: pytest.fail("fitted again"))
    found = methods_compared(study)
    k = found["names"].index("wawa")
    share = np.mean(study.fit.labels_ == expected)
    assert found["agreement"][0][k] == pytest.approx(share, abs=1e-4)


def test_members_of_a_given_fit_are_not_those_of_the_comparison(labels, truth):
    gold = {task: (truth[task] + 1) % 3 for task in range(40)}  # wrong on purpose
    study = study_crowd(labels, fit=Auto().fit(labels, gold=gold))
    found = methods_compared(study)
    k = found["names"].index("wawa")
    share = np.mean(study.fit.labels_ == Wawa().fit(labels).labels_)
    assert found["agreement"][0][k] == pytest.approx(share, abs=1e-4)


def test_the_choice_of_the_default_method_is_shown(study, summary):
    choice = methods_compared(study)["choice"]
    assert choice["chosen"] == study.fit.chosen_
    assert {row["name"]: row["score"] for row in choice["scores"]} == {
        name: row["score"] for name, row in study.fit.scores_.items()
    }
    scores = [row["score"] for row in choice["scores"]]
    assert scores == sorted(scores, reverse=True)
    page = render(summary)
    assert study.fit.reason_ in page
    assert f"{study.fit.chosen_} (chosen)" in page
    own = study.fit.scores_[study.fit.chosen_]
    assert f"<td>{own['score']:.3f}</td><td>{own['standard_error']:.3f}</td>" in page


def test_other_methods_have_no_choice(study):
    vote = MajorityVote().fit(study.labels)
    assert methods_compared(replace(study, fit=vote, blind=vote))["choice"] is None


def test_calibration_is_that_of_the_metrics(study, truth):
    found = calibration(study)
    codes = [truth[i] for i in range(study.labels.n_tasks)]
    expected = metrics.expected_calibration_error(codes, study.fit.probas_, n_bins=10)
    assert found["error"] == pytest.approx(expected)
    assert sum(row["count"] for row in found["rows"]) == study.labels.n_tasks
    assert all(row["low"] <= row["accuracy"] <= row["high"] for row in found["rows"])
