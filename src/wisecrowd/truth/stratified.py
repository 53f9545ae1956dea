r"""Shares and ratios of all tasks, estimated from checked ones, in strata.

Of the :math:`N_h` tasks of stratum h, :math:`n_h` are checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats, Longs, Mask
from wisecrowd.truth.intervals import wilson_interval

GOLD_PER_STRATUM = 20  # minimum of known answers for a meaningful stratum
MOST_STRATA = 5


class Share(NamedTuple):
    """A share (...) of all tasks, its interval, and how many tasks drawn alike say as much."""

    value: Floats
    low: Floats
    high: Floats
    n_eff: Floats


def stratified_share(right: Any, checked: Any, sizes: Any, level: float) -> Share:
    r"""Estimate the share of right results from a stratified random sample.

    .. math:: \hat A = \sum_h W_h \frac{x_h}{n_h}, \qquad
        V = \sum_h W_h^2 \Big(1 - \frac{n_h}{N_h}\Big)
            \frac{\tilde p_h (1 - \tilde p_h)}{n_h - 1}, \qquad
        \tilde p_h = \frac{x_h + (n \hat A + 2) / (n + 4)}{n_h + 1}

    with :math:`W_h = N_h / N`. The interval is Wilson's for :math:`B (1 - B) / V` tasks, where
    :math:`B = \sum_h W_h \tilde p_h`, with the quantile of a t distribution with as many degrees
    of freedom as there are more tasks than strata. What the checked tasks prove limits it.

    Parameters
    ----------
    right, checked : (..., n_strata)
        Right and checked tasks; every stratum has a checked one.
    sizes : (n_strata,)
        Tasks of each stratum.
    level : float

    Examples
    --------
    >>> found = stratified_share([60], [60], [800], 0.95)
    >>> found.value.item(), round(found.low.item(), 2), found.high.item()
    (1.0, 0.94, 1.0)
    """
    from scipy.special import stdtrit

    x, n, N = (np.asarray(one, dtype=np.float64) for one in (right, checked, sizes))
    total, weight = n.sum(axis=-1), N / N.sum()
    value = (weight * x / n).sum(axis=-1)
    prior = (total * value + 2) / (total + 4)
    p = (x + prior[..., None]) / (n + 1)
    unseen = np.maximum(1 - n / N, 0.0)
    variance = (weight**2 * unseen * p * (1 - p) / np.maximum(n - 1, 1)).sum(axis=-1)
    middle = (weight * p).sum(axis=-1)
    with np.errstate(divide="ignore"):
        n_eff = middle * (1 - middle) / variance
    t = stdtrit(np.maximum(total - n.shape[-1], 1.0), (1 + level) / 2)
    low, high = wilson_interval(value, n_eff, t)
    least, most = x.sum(axis=-1) / N.sum(), 1 - (n - x).sum(axis=-1) / N.sum()
    low, high = np.clip(low, least, most), np.clip(high, least, most)
    return Share(value, np.minimum(low, value), np.maximum(high, value), n_eff)


class Ratio(NamedTuple):
    """A ratio of sums over all tasks, its interval, and the tasks that a share would need for it.

    ``n_eff`` is NaN for a ratio that is not a share.
    """

    value: float
    low: float
    high: float
    n_eff: float = float("nan")


def stratified_ratio(
    top: Floats,
    bottom: Floats,
    stratum: Longs,
    sizes: Any,
    level: float,
    *,
    is_share: bool = False,
) -> Ratio:
    r"""Estimate a ratio of sums over all tasks from a stratified random sample, linearised.

    .. math:: R = \frac{\sum_i w_i\, top_i}{\sum_i w_i\, bottom_i}, \qquad
        V = \frac{\sum_h N_h^2 (1 - n_h / N_h)\, s_h^2(top - R\, bottom) / n_h}
                 {(\sum_i w_i\, bottom_i)^2}

    with :math:`w_i = N_h / n_h`. A stratum with a single checked task has the variance of all. The
    interval of a share, such as F1, is Wilson's for :math:`R (1 - R) / V` tasks: it covers more
    often than :math:`R \pm t \sqrt V` where few tasks have many errors.

    Parameters
    ----------
    top, bottom, stratum : (n_checked,)
        Sums of each checked task, and its stratum.
    sizes : (n_strata,)
    level : float
    is_share : bool
        Whether the ratio is between 0 and 1.

    Examples
    --------
    >>> found = stratified_ratio(np.array([1.0, 3.0]), np.array([2.0, 4.0]), np.array([0, 0]),
    ...                          np.array([2]), 0.95)
    >>> found.value == found.low == found.high == 4 / 6
    True
    """
    from scipy.special import stdtrit

    H = len(sizes)
    n = np.bincount(stratum, minlength=H).astype(np.float64)
    weight = (sizes / n)[stratum]
    below = float(weight @ bottom)
    if below <= 0:
        return Ratio(np.nan, np.nan, np.nan)
    value = float(weight @ top) / below
    rest = top - value * bottom
    mean = np.bincount(stratum, rest, H) / n
    squares = np.bincount(stratum, (rest - mean[stratum]) ** 2, H)
    spread = np.where(n > 1, squares / np.maximum(n - 1, 1), np.var(rest, ddof=len(rest) > 1))
    unseen = np.maximum(1 - n / sizes, 0.0)
    error = float(np.sqrt((sizes**2 * unseen * spread / n).sum())) / below
    t = float(stdtrit(max(len(top) - H, 1), (1 + level) / 2))
    if not (is_share and 0 < value < 1):  # a word error rate may be more than 1
        return Ratio(value, value - t * error, value + t * error)
    n_eff = value * (1 - value) / error**2 if error > 0 else np.inf
    low, high = wilson_interval(np.asarray(value), np.asarray(n_eff), t)
    return Ratio(value, min(float(low), value), max(float(high), value), n_eff)


def random_order_share(n_right: int, n: int, n_tasks: int, level: float) -> tuple[float, float]:
    r"""Return an interval of the share right that holds at every look at a growing random sample.

    It holds the shares whose prior probability, uniform over the numbers of wrong tasks, is less
    than :math:`1 / (1 - level)` times the posterior one (prior-posterior-ratio martingale).

    Parameters
    ----------
    n_right, n : int
        Right tasks among the first n of a random order.
    n_tasks : int
    level : float

    References
    ----------
    I. Waudby-Smith, A. Ramdas (2020). Confidence sequences for sampling without replacement.
    Advances in Neural Information Processing Systems 33.

    Examples
    --------
    >>> low, high = random_order_share(50, 60, 800, 0.95)
    >>> round(low, 2), round(high, 2)
    (0.66, 0.94)
    """
    from scipy.special import gammaln

    x = n - n_right
    wrong = np.arange(x, n_tasks - n_right + 1, dtype=np.float64)

    def log_choose(a: Any, b: Any) -> Any:
        return gammaln(a + 1) - gammaln(b + 1) - gammaln(a - b + 1)

    log = log_choose(wrong, x) + log_choose(n_tasks - wrong, n_right)
    posterior = np.exp(log - log.max())
    posterior /= posterior.sum()
    kept = wrong[posterior > (1 - level) / (n_tasks + 1)]
    return 1 - float(kept[-1]) / n_tasks, 1 - float(kept[0]) / n_tasks


@dataclass(frozen=True, eq=False)
class Stratified:
    """Accuracy on all tasks, estimated from gold on some: value, interval and strata."""

    value: float
    low: float
    high: float
    table: dict[str, NDArray[Any]]


def post_stratify(sure: Floats, right: Mask, known: Mask, confidence: float) -> Stratified:
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
    n = np.asarray(one_variance / variance)
    low, high = wilson_interval(np.asarray(value), n, float(ndtri((1 + confidence) / 2)))
    return float(low), float(high)
