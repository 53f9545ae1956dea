"""RaykarSets: features help, predictions repeat, files, gold, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.aggregation import SharedTwoCoin
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.learning import RaykarSets
from wisecrowd.learning.sets.raykar_sets import solve_sigmoid


@pytest.fixture(scope="module")
def problem():
    crowd = simulate.sets(150, 8, simulate.PerTask(2), classes=list("abcd"), n_prototypes=8)
    rng = np.random.default_rng(0)
    X = crowd.members @ rng.normal(size=(4, 6)) + 0.5 * rng.normal(size=(150, 6))
    return X, crowd


@pytest.fixture(scope="module")
def fitted(problem):
    X, crowd = problem
    return RaykarSets(l2=1.0).fit(X, crowd.data)


def test_features_help(problem, fitted):
    X, crowd = problem
    alone = SharedTwoCoin().fit(crowd.data)
    right = [np.mean(one.members_ == crowd.members) for one in (alone, fitted)]
    assert right[1] > right[0] + 0.02
    assert fitted.score(X, crowd.truth) > 0.85
    assert fitted.converged_
    assert np.corrcoef(fitted.sensitivity_.mean(axis=1), crowd.sensitivity.mean(axis=1))[0, 1] > 0.7


def test_predictions_with_labels_repeat_the_fit(problem, fitted):
    X, crowd = problem
    assert fitted.predict_proba(X, crowd.data) == pytest.approx(fitted.probas_, abs=1e-9)
    assert fitted.predict(X[:5]).tolist() == fitted.prediction_columns(X[:5])["labels"].tolist()


def test_files_and_sparse_features(problem, fitted, tmp_path):
    X, crowd = problem
    fitted.save(tmp_path / "model")
    again = wc.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(X), fitted.predict_proba(X))
    sparse = RaykarSets(l2=1.0, max_iter=3).fit(csr_array(X), crowd.data)
    dense = RaykarSets(l2=1.0, max_iter=3).fit(X, crowd.data)
    assert sparse.predict_proba(csr_array(X)) == pytest.approx(dense.predict_proba(X), abs=1e-4)


def test_gold_is_kept_and_bare_rows_are_a_finding(problem):
    X, crowd = problem
    part = crowd.data.select_annotations(crowd.data.task > 0)
    with pytest.warns(UserWarning, match="1 of 150 rows of X have no labels"):
        model = RaykarSets(max_iter=2).fit(X, part, gold={1: ["a", "d"], 2: []})
    assert model.labels_[1:3].tolist() == ["a|d", ""]
    assert np.isfinite(model.probas_).all()


def test_the_regression_is_at_its_optimum():
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(80, 3)), np.ones((80, 1))])
    targets = rng.random((80, 2))
    weights = solve_sigmoid(X, targets, 2.0, np.zeros((2, 4)))
    slope = (1 / (1 + np.exp(-X @ weights.T)) - targets).T @ X
    slope[:, :-1] += 2.0 * weights[:, :-1]
    assert np.abs(slope).max() < 1e-3


def test_wrong_input_is_refused(problem, fitted):
    X, crowd = problem
    with pytest.raises(DataError, match="6"):
        fitted.predict(X[:, :3])
    with pytest.raises(ParameterError, match="no checkpoints"):
        RaykarSets().fit(X, crowd.data, resume=True)
    with pytest.raises(ParameterError, match="threshold"):
        RaykarSets(threshold=2.0).fit(X, crowd.data)
    with pytest.raises(DataError, match="y"):
        RaykarSets().fit(X)
