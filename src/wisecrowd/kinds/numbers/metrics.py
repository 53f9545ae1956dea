r"""Scores of numbers: errors, explained variance, correlation, and coverage of intervals."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.metric_inputs import FloatArray, as_scores


def rmse(truth: npt.ArrayLike, predicted: npt.ArrayLike) -> float:
    r"""Root mean squared error.

    .. math:: \sqrt{\frac1N \sum_i (\hat z_i - z_i)^2}

    Parameters
    ----------
    truth, predicted : array-like of shape (n_tasks,)

    Returns
    -------
    float

    Examples
    --------
    >>> rmse([1.0, 2.0], [1.0, 4.0]) ** 2
    2.0...
    """
    true, given = _pair(truth, predicted)
    return float(np.sqrt(np.mean((given - true) ** 2)))


def mean_absolute_error(truth: npt.ArrayLike, predicted: npt.ArrayLike) -> float:
    r"""Mean absolute error.

    .. math:: \frac1N \sum_i |\hat z_i - z_i|

    Parameters
    ----------
    truth, predicted : array-like of shape (n_tasks,)

    Returns
    -------
    float

    Examples
    --------
    >>> mean_absolute_error([1.0, 2.0], [1.0, 4.0])
    1.0
    """
    true, given = _pair(truth, predicted)
    return float(np.mean(np.abs(given - true)))


def r2_score(truth: npt.ArrayLike, predicted: npt.ArrayLike) -> float:
    r"""Share of the variance of the truth that the predictions explain.

    .. math:: R^2 = 1 - \frac{\sum_i (\hat z_i - z_i)^2}{\sum_i (z_i - \bar z)^2}

    It is 0 for the mean of the truth and negative for worse predictions.

    Parameters
    ----------
    truth, predicted : array-like of shape (n_tasks,)
        The truth must not be constant.

    Returns
    -------
    float

    Examples
    --------
    >>> r2_score([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    0.5
    """
    true, given = _pair(truth, predicted)
    spread = float(np.sum((true - true.mean()) ** 2))
    if spread == 0:
        raise DataError("`truth` is constant, so R² is not defined; use rmse.")
    return float(1 - np.sum((given - true) ** 2) / spread)


def correlation(truth: npt.ArrayLike, predicted: npt.ArrayLike) -> float:
    """Pearson's correlation of truth and predictions, which ignores a common shift and scale.

    Parameters
    ----------
    truth, predicted : array-like of shape (n_tasks,)
        Neither may be constant.

    Returns
    -------
    float

    Examples
    --------
    >>> round(correlation([1.0, 2.0, 3.0], [30.0, 20.0, 10.0]), 6)
    -1.0
    """
    true, given = (one - one.mean() for one in _pair(truth, predicted))
    spread = float(np.sqrt((true**2).sum()) * np.sqrt((given**2).sum()))
    if spread == 0:
        raise DataError("`truth` or `predicted` is constant: it has no correlation; use rmse.")
    return float(np.clip((true * given).sum() / spread, -1.0, 1.0))


def coverage(truth: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike) -> float:
    """Share of the true numbers inside their intervals, limits included.

    Parameters
    ----------
    truth, low, high : array-like of shape (n_tasks,)

    Returns
    -------
    float

    Examples
    --------
    >>> coverage([1.0, 2.0], [0.5, 2.5], [1.5, 3.5])
    0.5
    """
    true, below = _pair(truth, low, "low")
    _, above = _pair(truth, high, "high")
    if (below > above).any():
        first = int(np.argmax(below > above))
        raise DataError(f"`low` is above `high` at position {first}; swap them.")
    return float(np.mean((below <= true) & (true <= above)))


def _pair(
    truth: npt.ArrayLike, predicted: npt.ArrayLike, name: str = "predicted"
) -> tuple[FloatArray, FloatArray]:
    true, given = as_scores(truth, "truth"), as_scores(predicted, name)
    if true.shape != given.shape:
        raise DataError(
            f"`truth` has {true.size} values but `{name}` has {given.size}; give one per task, in "
            "the same order."
        )
    return true, given
