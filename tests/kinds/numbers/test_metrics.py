"""Scores of numbers by hand."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.metrics import correlation, coverage, mean_absolute_error, r2_score, rmse


def test_scores_by_hand():
    truth, given = [0.0, 2.0, 4.0], [1.0, 2.0, 2.0]
    assert rmse(truth, given) == pytest.approx(np.sqrt(5 / 3))
    assert mean_absolute_error(truth, given) == 1.0
    assert r2_score(truth, given) == pytest.approx(1 - 5 / 8)
    assert correlation(truth, given) == pytest.approx(np.corrcoef(truth, given)[0, 1])
    assert coverage(truth, [0.0, 3.0, 3.0], [1.0, 4.0, 4.0]) == pytest.approx(2 / 3)


def test_bad_input_is_refused():
    for metric in (rmse, mean_absolute_error, r2_score, correlation):
        with pytest.raises(DataError, match="one per task"):
            metric([1.0, 2.0], [1.0])
        with pytest.raises(DataError, match="not finite at position 1"):
            metric([1.0, np.nan], [1.0, 2.0])
    with pytest.raises(DataError, match="constant"):
        r2_score([1.0, 1.0], [1.0, 2.0])
    with pytest.raises(DataError, match="constant"):
        correlation([1.0, 2.0], [1.0, 1.0])
    with pytest.raises(DataError, match="above `high`"):
        coverage([1.0], [2.0], [1.0])
