"""Post-stratification: gold on some tasks, weighted to the confidence of all tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

GOLD_PER_STRATUM = 20  # minimum gold for a meaningful stratum
MOST_STRATA = 5


@dataclass(frozen=True, eq=False)
class Stratified:
    """Accuracy on all tasks, estimated from gold on some: value, interval and strata."""

    value: float
    low: float
    high: float
    table: dict[str, NDArray[Any]]


def post_stratify(
    sure: Floats, right: NDArray[np.bool_], known: NDArray[np.bool_], confidence: float
) -> Stratified:
    r"""Estimate the share of correct labels from tasks with gold, in strata of confidence.

    .. math:: \hat A = \sum_h \frac{N_h}{N} \frac{x_h}{n_h}, \qquad
        V = \sum_h \Big(\frac{N_h}{N}\Big)^2 \Big(1 - \frac{n_h}{N_h}\Big)
            \frac{\tilde p_h (1 - \tilde p_h)}{n_h}

    where :math:`x_h` of the :math:`n_h` gold tasks among the :math:`N_h` tasks of stratum h are
    correct, and :math:`\tilde p_h = (x_h + 1) / (n_h + 2)`. The interval is Wilson's for the number
    of gold tasks that has this variance. Gold tasks may therefore differ from the others in
    confidence.

    Parameters
    ----------
    sure : (n_tasks,)
        Probability of the aggregated label.
    right : (n_tasks,) bool
        Whether the label is correct; used only where ``known``.
    known : (n_tasks,) bool
        Mask of tasks with gold, at least one.
    confidence : float

    References
    ----------
    D. Holt, T. M. F. Smith (1979). Post stratification. Journal of the Royal Statistical Society A
    142(1), 33-46.

    Examples
    --------
    >>> sure = np.repeat([0.6, 0.9], [500, 500])
    >>> known = np.arange(1000) % 20 == 0
    >>> found = post_stratify(sure, np.arange(1000) % 200 > 20, known, 0.95)
    >>> round(found.value, 3), found.table["n_gold"].tolist()
    (0.8, [25, 25])
    """
    edges = _edges(sure[known])
    stratum = np.searchsorted(edges, sure, side="right")
    size = len(edges) + 1
    n_tasks = np.bincount(stratum, minlength=size)
    n_gold = np.bincount(stratum[known], minlength=size)
    correct = np.bincount(stratum[known & right], minlength=size)
    share = n_tasks / len(sure)
    accuracy = correct / n_gold
    smooth = (correct + 1) / (n_gold + 2)
    unseen = 1 - n_gold / n_tasks
    variance = float((share**2 * unseen * smooth * (1 - smooth) / n_gold).sum())
    value, middle = float(share @ accuracy), float(share @ smooth)
    low, high = _wilson(value, middle * (1 - middle), variance, confidence)
    return Stratified(
        value,
        max(low, correct.sum() / len(sure)),  # known labels limit the interval
        min(high, 1 - (n_gold - correct).sum() / len(sure)),
        {
            "confidence_from": np.concatenate([[sure.min()], edges]),
            "confidence_to": np.concatenate([edges, [sure.max()]]),
            "n_tasks": n_tasks,
            "n_gold": n_gold,
            "accuracy": accuracy,
        },
    )


def _edges(sure: Floats) -> Floats:
    """Return limits of the confidence that divide gold evenly; every stratum has some gold."""
    n_strata = min(max(len(sure) // GOLD_PER_STRATUM, 1), MOST_STRATA)
    distinct = np.unique(sure)
    if n_strata == 1 or len(distinct) == 1:
        return np.empty(0)
    edges = np.quantile(sure, np.arange(1, n_strata) / n_strata, method="inverted_cdf")
    return np.unique(
        np.maximum(edges, distinct[1])
    )  # every stratum begins with gold, including the first


def _wilson(
    value: float, one_variance: float, variance: float, confidence: float
) -> tuple[float, float]:
    """Return Wilson's interval of a share with a variance, where one task has ``one_variance``."""
    from scipy.special import ndtri

    if variance <= 0:
        return value, value  # every task has gold
    n = one_variance / variance
    z = float(ndtri((1 + confidence) / 2))
    centre = (value + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * np.sqrt(value * (1 - value) / n + z**2 / (4 * n**2))
    return float(centre - reach), float(centre + reach)
