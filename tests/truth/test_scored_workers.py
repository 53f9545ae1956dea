"""Workers scored against a truth."""

from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError
from wisecrowd.truth import score_workers

TASKS = ["t1", "t1", "t2", "t2", "t3", "t3", "t4"]
WORKERS = ["ann", "bob", "ann", "bob", "ann", "bob", "cat"]
LABELS = ["a", "a", "b", "a", "a", "b", "b"]
TRUTH = {"t1": "a", "t2": "b", "t3": "a", "t9": "a"}


def test_shares_and_wilsons_intervals():
    found = score_workers((TASKS, WORKERS, LABELS), TRUTH)
    assert found.columns["worker"].tolist() == ["ann", "bob", "cat"]
    assert found.columns["n_labels"].tolist() == [3, 3, 1]
    assert found.columns["n_truth"].tolist() == [3, 3, 0]
    np.testing.assert_allclose(found.columns["right"], [1, 1 / 3, np.nan])
    np.testing.assert_allclose(found.columns["low"][:2], [0.4385, 0.0615], atol=1e-4)
    np.testing.assert_allclose(found.columns["high"][:2], [1.0, 0.7923], atol=1e-4)
    assert found.summary() == {"n_workers": 2, "mean_right": pytest.approx(2 / 3)}
    assert found.table("pyarrow").column_names == [*found.columns]


def test_claims_by_interval_by_error_and_alone():
    claims = {"worker": ["bob", "ann"], "accuracy": [0.5, 0.9], "low": [0.4, 0.8], "high": [0.6, 1]}
    found = score_workers((TASKS, WORKERS, LABELS), TRUTH, claimed=claims)
    np.testing.assert_allclose(found.columns["claimed"], [0.9, 0.5, np.nan])
    assert found.summary()["mean_claimed_minus_right"] == pytest.approx((-0.1 + 1 / 6) / 2)
    assert found.summary()["coverage"] == 0.5
    claims = {"worker": ["ann", "bob"], "agreement_with_result": ["0.9", ""],
              "standard_error": ["0.1", ""]}  # fmt: skip
    found = score_workers((TASKS, WORKERS, LABELS), TRUTH, claimed=claims)
    assert found.summary()["n_compared"] == 1
    assert found.columns["claimed_low"][0] == pytest.approx(0.704, abs=1e-3)
    assert found.summary()["coverage"] == 1.0
    alone = score_workers(
        (TASKS, WORKERS, LABELS), TRUTH, claimed={"worker": ["ann"], "accuracy": [1]}
    )
    assert "coverage" not in alone.summary()


def test_a_fit_is_a_claim():
    fit = wc.aggregation.MajorityVote()._fit_without_checks((TASKS, WORKERS, LABELS))
    found = score_workers((TASKS, WORKERS, LABELS), TRUTH, claimed=fit)
    np.testing.assert_allclose(found.columns["claimed"], fit.worker_accuracy_)


def test_unusable_claims_and_truth_are_refused():
    crowd = (TASKS, WORKERS, LABELS)
    with pytest.raises(DataError, match="give worker and accuracy or agreement_with_result"):
        score_workers(crowd, TRUTH, claimed={"worker": ["ann"], "skill": [1]})
    with pytest.raises(DataError, match="none of the workers"):
        score_workers(crowd, TRUTH, claimed={"worker": ["zoe"], "accuracy": [1]})
    with pytest.raises(DataError, match="not a number"):
        score_workers(crowd, TRUTH, claimed={"worker": ["ann"], "accuracy": ["good"]})
    with pytest.raises(DataError, match="none of these tasks"):
        score_workers(crowd, {"t9": "a"})
