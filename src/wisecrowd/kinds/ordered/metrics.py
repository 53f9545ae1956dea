r"""Scores of labels whose classes are ordered: errors count by their distance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.metric_inputs import IntArray, as_codes, encode_pair
from wisecrowd.kinds.classes.metrics.worker_kappas import two_worker_kappa


def ordinal_mean_absolute_error(
    truth: npt.ArrayLike, predicted: npt.ArrayLike, *, classes: npt.ArrayLike | None = None
) -> float:
    r"""Mean distance between label and true class, with classes counted 0, 1, 2, ...

    .. math:: \frac1N \sum_i |\hat z_i - z_i|

    Parameters
    ----------
    truth, predicted : array-like of shape (n_tasks,)
        Class ids, in the same order.
    classes : array-like of shape (n_classes,), optional
        All classes, the lowest first; by default the sorted ids that occur.

    Returns
    -------
    float

    Examples
    --------
    >>> ordinal_mean_absolute_error([1, 2, 5], [1, 3, 3], classes=[1, 2, 3, 4, 5])
    1.0
    """
    true_codes, codes, _ = _grades(truth, predicted, classes)
    return float(np.mean(np.abs(true_codes - codes)))


def quadratic_weighted_kappa(
    truth: npt.ArrayLike, predicted: npt.ArrayLike, *, classes: npt.ArrayLike | None = None
) -> float:
    r"""Cohen's kappa with squared distances: one minus observed over expected squared error.

    .. math::
        \kappa = 1 - \frac{\sum_i (\hat z_i - z_i)^2 / N}
                          {\sum_{i, i'} (\hat z_i - z_{i'})^2 / N^2}

    with classes counted 0, 1, 2, ...

    Parameters
    ----------
    truth, predicted : array-like of shape (n_tasks,)
        Class ids, in the same order.
    classes : array-like of shape (n_classes,), optional
        All classes, the lowest first; by default the sorted ids that occur.

    Returns
    -------
    float
        1 for perfect agreement, 0 for chance; NaN if truth and labels are all of one class.

    References
    ----------
    J. Cohen (1968). Weighted kappa: nominal scale agreement with provision for scaled disagreement
    or partial credit. Psychological Bulletin 70(4), 213-220.

    Examples
    --------
    >>> round(quadratic_weighted_kappa([0, 0, 1, 2], [0, 1, 1, 2]), 4)
    0.8
    """
    true_codes, codes, n_classes = _grades(truth, predicted, classes)
    return two_worker_kappa(true_codes, codes, np.arange(n_classes, dtype=np.float64), "quadratic")


def _grades(
    truth: npt.ArrayLike, predicted: npt.ArrayLike, classes: npt.ArrayLike | None
) -> tuple[IntArray, IntArray, int]:
    """Return both arrays as positions in the order of the classes, and the number of classes."""
    true_codes, codes, ids = encode_pair(truth, predicted)
    if classes is None:
        return true_codes, codes, len(ids)
    order = np.asarray(classes)
    if order.ndim != 1 or not len(order):
        raise DataError("`classes` must list all classes, the lowest first.")
    shape = (len(true_codes), len(order))
    found = [as_codes(ids[some], shape, order) for some in (true_codes, codes)]
    return found[0], found[1], len(order)
