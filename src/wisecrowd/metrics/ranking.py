r"""Scores for few positives among many: the k highest are called positive."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import DataError
from wisecrowd.metrics._inputs import as_codes, as_scores


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
    truth : array-like of shape (n_tasks,)
        1 or True for a positive task, 0 or False otherwise.
    scores : array-like of shape (n_tasks,)
        Larger is more likely positive.

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
