"""Scores of ordered classes against closed forms and the definition."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.metrics import ordinal_mean_absolute_error, quadratic_weighted_kappa


def kappa_by_table(truth, predicted, n_classes):
    table = np.zeros((n_classes, n_classes))
    np.add.at(table, (truth, predicted), 1.0)
    weight = np.subtract.outer(np.arange(n_classes), np.arange(n_classes)) ** 2
    expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
    return 1 - (weight * table).sum() / (weight * expected).sum()


@pytest.mark.parametrize("seed", range(3))
def test_kappa_is_that_of_the_table(seed):
    rng = np.random.default_rng(seed)
    truth, predicted = rng.integers(0, 5, 80), rng.integers(0, 5, 80)
    expected = kappa_by_table(truth, predicted, 5)
    assert quadratic_weighted_kappa(truth, predicted) == pytest.approx(expected, abs=1e-12)
    metrics = pytest.importorskip("sklearn.metrics")
    found = metrics.cohen_kappa_score(truth, predicted, weights="quadratic")
    assert quadratic_weighted_kappa(truth, predicted) == pytest.approx(found, abs=1e-12)


def test_classes_are_counted_in_their_order():
    scale = ["low", "mid", "high"]
    truth, predicted = ["low", "mid", "high", "low"], ["high", "mid", "mid", "low"]
    assert ordinal_mean_absolute_error(truth, predicted, classes=scale) == 0.75
    expected = kappa_by_table([0, 1, 2, 0], [2, 1, 1, 0], 3)
    found = quadratic_weighted_kappa(truth, predicted, classes=scale)
    assert found == pytest.approx(expected)
    # Without the scale, the grades that occur are neighbours.
    assert ordinal_mean_absolute_error([1, 5], [5, 5]) == 0.5
    assert ordinal_mean_absolute_error([1, 5], [5, 5], classes=[1, 2, 3, 4, 5]) == 2.0


def test_ends():
    assert quadratic_weighted_kappa([1, 2, 3], [1, 2, 3]) == 1.0
    assert quadratic_weighted_kappa([1, 2, 3], [3, 2, 1]) == pytest.approx(-1.0)
    assert np.isnan(quadratic_weighted_kappa([1, 1], [1, 1]))
    with pytest.raises(DataError, match="not one of"):
        ordinal_mean_absolute_error([1, 7], [1, 2], classes=[1, 2, 3])
    with pytest.raises(DataError, match="classes"):
        ordinal_mean_absolute_error([1, 2], [1, 2], classes=3)
