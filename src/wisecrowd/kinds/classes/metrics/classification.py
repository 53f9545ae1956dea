r"""Scores against the true classes: of labels (accuracy and its variants) and of probabilities."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.metric_inputs import (
    FloatArray,
    IntArray,
    as_codes,
    as_probabilities,
    as_scores,
    as_table,
    encode_pair,
)
from wisecrowd.core.parameter_checks import SMALLEST_NUMBER, check_integer, check_number

_TIE_TOLERANCE = 1e-12


def accuracy(truth: npt.ArrayLike, predicted: npt.ArrayLike) -> float:
    r"""Share of tasks whose label is the true class.

    .. math:: \frac1N \sum_i 1\{\hat z_i = z_i\}

    Parameters
    ----------
    truth, predicted : array-like of shape (n_tasks,)
        Class ids of any sortable type, in the same order.

    Returns
    -------
    float

    Examples
    --------
    >>> accuracy(["cat", "dog", "dog", "cat"], ["cat", "dog", "cat", "cat"])
    0.75
    """
    true_codes, predicted_codes, _ = encode_pair(truth, predicted)
    return float(np.mean(true_codes == predicted_codes))


def fractional_accuracy(
    truth: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    classes: npt.ArrayLike | None = None,
    atol: float = 1e-12,
) -> float:
    r"""Accuracy expected when ties for the highest score are broken at random.

    .. math::

        \frac1N \sum_i \frac{1\{z_i \in T_i\}}{|T_i|}, \qquad
        T_i = \{k : s_{ik} \ge \max_l s_{il} - \text{atol}\}

    Parameters
    ----------
    truth : array-like of shape (n_tasks,)
        Class codes, or class ids when `classes` is given.
    scores : array-like of shape (n_tasks, n_classes)
        Probabilities, votes or any score; larger is more likely.
    classes : array-like of shape (n_classes,), optional
        The id of each column.
    atol : float, default 1e-12
        Scores this close to the highest count as tied with it.

    Returns
    -------
    float

    Examples
    --------
    >>> fractional_accuracy([0, 1], [[2, 2, 0], [0, 3, 1]])
    0.75
    """
    table = as_table(scores, "scores", "n_tasks", "n_classes")
    bad = np.isnan(table).any(axis=1)
    if bad.any():
        raise DataError(f"Row {int(np.argmax(bad))} of `scores` has a NaN.")
    check_number("atol", atol, 0.0)
    codes = as_codes(truth, table.shape, classes)
    return float(np.mean(tie_credit(codes, table, atol)))


def tie_credit(codes: IntArray, scores: FloatArray, atol: float) -> FloatArray:
    """(N,) expected correctness of each task under random tie-breaking."""
    tied = scores >= scores.max(axis=1, keepdims=True) - atol
    credit: FloatArray = tied[np.arange(codes.size), codes] / tied.sum(axis=1)
    return credit


def balanced_accuracy(truth: npt.ArrayLike, predicted: npt.ArrayLike) -> float:
    r"""Mean over the classes that occur in the truth of the share of their tasks that is right.

    .. math:: \frac{1}{|\mathcal K|} \sum_{k \in \mathcal K}
              \frac{\#\{i : z_i = k, \hat z_i = k\}}{\#\{i : z_i = k\}},
              \qquad \mathcal K = \{k : k \text{ is some } z_i\}

    Parameters
    ----------
    truth, predicted : array-like of shape (n_tasks,)
        Class ids of any sortable type, in the same order.

    Returns
    -------
    float

    Examples
    --------
    >>> balanced_accuracy([0, 0, 0, 1], [0, 0, 0, 0])
    0.5
    """
    hits, true_counts, _ = _class_counts(truth, predicted)
    present = true_counts > 0
    return float(np.mean(hits[present] / true_counts[present]))


def macro_f1(truth: npt.ArrayLike, predicted: npt.ArrayLike) -> float:
    r"""Unweighted mean of the F1 of every class that is true or predicted somewhere.

    .. math:: F_k = \frac{2\, TP_k}{\#\{i : z_i = k\} + \#\{i : \hat z_i = k\}}

    A class that is only predicted, or never predicted, has :math:`F_k = 0` and counts.

    Parameters
    ----------
    truth, predicted : array-like of shape (n_tasks,)
        Class ids of any sortable type, in the same order.

    Returns
    -------
    float

    Examples
    --------
    >>> round(macro_f1([0, 0, 1, 1], [0, 1, 1, 1]), 4)
    0.7333
    """
    hits, true_counts, predicted_counts = _class_counts(truth, predicted)
    return float(np.mean(2.0 * hits / (true_counts + predicted_counts)))


def _class_counts(truth: npt.ArrayLike, predicted: npt.ArrayLike) -> list[IntArray]:
    """Per class of the union: true positives, true tasks, predicted tasks."""
    true_codes, predicted_codes, classes = encode_pair(truth, predicted)
    hits = true_codes[true_codes == predicted_codes]
    return [np.bincount(c, minlength=classes.size) for c in (hits, true_codes, predicted_codes)]


def _expected_hits(truth: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[float, int, int]:
    """Count expected true positives among the k highest scores; also give k and N."""
    values = as_scores(scores)
    positive = as_codes(truth, (values.size, 2), None).astype(bool)
    k = int(positive.sum())
    if k == 0:
        raise DataError("`truth` has no positive task (1), so there is no k to call positive.")
    threshold = np.partition(values, values.size - k)[values.size - k]
    above, tied = values > threshold, values == threshold
    # k - #above of the tied tasks are called positive, every subset equally likely.
    share = (k - int(above.sum())) / int(tied.sum())
    return float(positive[above].sum() + share * positive[tied].sum()), k, values.size


def top_k_accuracy(truth: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    r"""Accuracy when the k highest scores are called positive, k = number of true positives.

    With :math:`TP` true positives among the k, as many tasks are wrongly called positive as
    are missed, so that

    .. math:: 1 - \frac{2 (k - TP)}{N}

    Tasks tied at the boundary are chosen at random; the value is the expectation over that.

    Parameters
    ----------
    truth : array-like of shape (n_tasks,)
        1 or True for a positive task, 0 or False otherwise.
    scores : array-like of shape (n_tasks,)
        Larger is more likely positive.

    Returns
    -------
    float

    Examples
    --------
    >>> top_k_accuracy([1, 1, 0, 0], [0.9, 0.2, 0.4, 0.1])
    0.5
    """
    hits, k, n_tasks = _expected_hits(truth, scores)
    return 1.0 - 2.0 * (k - hits) / n_tasks


def top_k_f1(truth: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    r"""F1 when the k highest scores are called positive, k = number of true positives.

    Precision and recall have the same denominator k, so that :math:`F_1 = TP / k`. Tasks tied
    at the boundary are chosen at random; the value is the expectation over that.

    Parameters
    ----------
    truth, scores : array-like of shape (n_tasks,)
        As for `top_k_accuracy`.

    Returns
    -------
    float

    Examples
    --------
    Two tasks share the second place and one of them is positive.

    >>> top_k_f1([1, 1, 0, 0], [0.9, 0.4, 0.4, 0.1])
    0.75
    """
    hits, k, _ = _expected_hits(truth, scores)
    return hits / k


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
