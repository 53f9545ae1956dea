from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from wisecrowd.cli.run.scores import spread_confidence
from wisecrowd.core.result import dense_rows
from wisecrowd.kinds.classes.scorer import MatchedTruth, probability_scores


def test_truth_is_matched_by_id():
    truth = MatchedTruth(["c", "x", "a"], ["k", "l", "m"], np.array(["a", "b", "c"], dtype=object))
    assert truth.rows.tolist() == [2, 0]
    assert truth.classes.tolist() == ["k", "m"]
    assert truth.n_unknown == 1


def test_sparse_rows_spread_what_they_lack():
    sparse = csr_array(np.array([[0.5, 0.3, 0, 0], [0, 1.0, 0, 0]]))
    expected = [[0.5, 0.3, 0.1, 0.1], [0, 1, 0, 0]]
    assert dense_rows(sparse) == pytest.approx(np.array(expected))


def test_dense_rows_are_left_alone():
    rows = np.array([[0.25, 0.75]])
    assert dense_rows(rows) is rows


def test_a_class_nobody_named_has_no_probability():
    truth = MatchedTruth(["a"], ["new"], np.array(["a"], dtype=object))
    classes = np.array(["x", "y"], dtype=object)
    found = probability_scores(truth, np.array([[0.5, 0.5]]), classes)
    assert found["brier_score"] == 0.5**2 + 0.5**2 + 1


def test_confidence_is_spread_evenly():
    labels, classes = np.array(["b"], dtype=object), np.array(["a", "b", "c"], dtype=object)
    assert spread_confidence(labels, np.array([0.5]), classes).tolist() == [[0.25, 0.5, 0.25]]
    only = spread_confidence(labels, np.array([0.5]), np.array(["b"], dtype=object))
    assert only.tolist() == [[1.0]]
