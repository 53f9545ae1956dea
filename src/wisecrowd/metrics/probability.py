r"""Scores of probabilities: log loss, Brier score, calibration error."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from wisecrowd.core.parameter_checks import SMALLEST_NUMBER, check_integer, check_number
from wisecrowd.metrics._inputs import as_codes, as_probabilities
from wisecrowd.metrics.classification import tie_credit

_TIE_TOLERANCE = 1e-12


def log_loss(
    truth: npt.ArrayLike,
    probas: npt.ArrayLike,
    *,
    classes: npt.ArrayLike | None = None,
    eps: float = float(np.finfo(np.float64).eps),
) -> float:
    r"""Mean negative log-probability (natural logarithm) of the true class.

    .. math:: -\frac1N \sum_i \log \max(p_{i z_i}, \varepsilon)

    Parameters
    ----------
    truth : array-like of shape (n_tasks,)
        Class codes, or class ids when `classes` is given.
    probas : array-like of shape (n_tasks, n_classes)
        Rows sum to one.
    classes : array-like of shape (n_classes,), optional
        The id of each column.
    eps : float, default 2.2e-16
        Floor that keeps a certain and wrong row finite (36 nats).

    Returns
    -------
    float

    Examples
    --------
    >>> round(log_loss([0, 1], [[0.5, 0.5], [0.25, 0.75]]), 4)
    0.4904
    """
    check_number("eps", eps, SMALLEST_NUMBER, 1 - 1e-12)
    table = as_probabilities(probas)
    codes = as_codes(truth, table.shape, classes)
    of_truth = table[np.arange(codes.size), codes]
    # A row that sums to 1 + rounding may state a hair more than certainty.
    return float(-np.mean(np.log(np.clip(of_truth, eps, 1.0))))


def brier_score(
    truth: npt.ArrayLike, probas: npt.ArrayLike, *, classes: npt.ArrayLike | None = None
) -> float:
    r"""Mean squared distance of the stated probabilities from the truth, in [0, 2].

    .. math:: \frac1N \sum_i \sum_k (p_{ik} - 1\{z_i = k\})^2

    This is Brier's own definition, summed over the classes; half of it is the
    one-column score often quoted for two classes.

    Parameters
    ----------
    truth : array-like of shape (n_tasks,)
        Class codes, or class ids when `classes` is given.
    probas : array-like of shape (n_tasks, n_classes)
        Rows sum to one.
    classes : array-like of shape (n_classes,), optional
        The id of each column.

    Returns
    -------
    float

    References
    ----------
    G. W. Brier (1950). Verification of forecasts expressed in terms of probability.
    Monthly Weather Review 78.

    Examples
    --------
    >>> brier_score([0, 1], [[0.5, 0.5], [0.25, 0.75]])
    0.3125
    """
    table = as_probabilities(probas)
    codes = as_codes(truth, table.shape, classes)
    table[np.arange(codes.size), codes] -= 1.0  # a fresh copy: as_probabilities never aliases
    return float(np.mean(np.sum(table * table, axis=1)))


def expected_calibration_error(
    truth: npt.ArrayLike,
    probas: npt.ArrayLike,
    *,
    classes: npt.ArrayLike | None = None,
    n_bins: int = 15,
) -> float:
    r"""Mean gap between the confidence and the accuracy of tasks of similar confidence.

    The confidence :math:`c_i = \max_k p_{ik}` falls into one of `n_bins` bins of equal
    width, :math:`B_b = (\frac{b-1}{n}, \frac{b}{n}]`; with :math:`a_i` the correctness,

    .. math:: \sum_b \frac{|B_b|}{N} \Bigl| \frac{1}{|B_b|} \sum_{i \in B_b} (a_i - c_i) \Bigr|

    Ties for the highest probability earn their expected correctness, as in
    `fractional_accuracy`.

    Parameters
    ----------
    truth : array-like of shape (n_tasks,)
        Class codes, or class ids when `classes` is given.
    probas : array-like of shape (n_tasks, n_classes)
        Rows sum to one.
    classes : array-like of shape (n_classes,), optional
        The id of each column.
    n_bins : int, default 15
        Number of bins of [0, 1].

    Returns
    -------
    float

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun, K. Weinberger (2017). On calibration of modern neural
    networks. ICML.

    Examples
    --------
    >>> round(expected_calibration_error([0, 0, 1], [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1]]), 4)
    0.2333
    """
    check_integer("n_bins", n_bins, 1)
    table = as_probabilities(probas)
    codes = as_codes(truth, table.shape, classes)
    confidence = np.minimum(table.max(axis=1), 1.0)
    gap = tie_credit(codes, table, _TIE_TOLERANCE) - confidence
    edges = np.arange(1, n_bins) / n_bins
    bins = np.searchsorted(edges, confidence, side="left")
    return float(np.abs(np.bincount(bins, weights=gap, minlength=n_bins)).sum() / codes.size)
