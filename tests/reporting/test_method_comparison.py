from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import metrics
from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.reporting.method_comparison import calibration, methods_compared
from wisecrowd.reporting.study import study_crowd


def test_agreement_and_accuracy_of_methods(study, truth):
    found = methods_compared(study)
    vote = MajorityVote().fit(study.labels)
    n = found["names"].index("majority-vote")
    assert found["names"][0] == "dawid-skene"
    assert found["agreement"][0][n] == pytest.approx(
        np.mean(study.fit.labels_ == vote.labels_), abs=1e-4
    )
    assert found["accuracy"][n]["value"] == pytest.approx(vote.score(study.labels, truth))
    table = np.array(found["agreement"])
    assert np.array_equal(table, table.T)
    assert (np.diag(table) == 1).all()


def test_the_audits_fit_is_not_made_twice(labels, monkeypatch):
    study = study_crowd(labels, method="majority-vote")
    expected = DawidSkene().fit(labels).labels_
    monkeypatch.setattr(DawidSkene, "fit", lambda *_: pytest.fail("fitted again"))
    found = methods_compared(study)
    k = found["names"].index("dawid-skene")
    share = np.mean(study.fit.labels_ == expected)
    assert found["agreement"][0][k] == pytest.approx(share, abs=1e-4)


def test_calibration_is_that_of_the_metrics(study, truth):
    found = calibration(study)
    codes = [truth[i] for i in range(study.labels.n_tasks)]
    expected = metrics.expected_calibration_error(codes, study.fit.probas_, n_bins=10)
    assert found["error"] == pytest.approx(expected)
    assert sum(row["count"] for row in found["rows"]) == study.labels.n_tasks
    assert all(row["low"] <= row["accuracy"] <= row["high"] for row in found["rows"])
