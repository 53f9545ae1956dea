r"""Answers of methods for items: intervals, ranges of ranks, and the chance to be the best.

The largest of many noisy scores is too large. For the probability to be the best, scores therefore
get a prior :math:`N(0, k^2)` whose width k is integrated. On the axes of the centred covariance,
with eigenvalues :math:`\lambda` and scores a,

.. math:: p(k \mid a) \propto e^{-(\log k)^2 / 2} \prod_i N(a_i; 0, \lambda_i + k^2), \qquad
    a_i \mid k \sim N\Bigl(\tfrac{k^2 a_i}{k^2 + \lambda_i},
    \tfrac{k^2 \lambda_i}{k^2 + \lambda_i}\Bigr),

and P(best) is the share of draws in which an item is the best. Without shrinkage (k → ∞) it is the
share among draws from :math:`N(s, V)`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.types import Floats, Ints, Mask
from wisecrowd.kinds.pairs.answers import ItemAnswers
from wisecrowd.kinds.pairs.methods.comparisons import Votes, parts
from wisecrowd.kinds.pairs.methods.covariance import (
    FEW_CLUSTERS,
    MOST_DENSE,
    SINGLE,
    Clusters,
)

N_DRAWS = 2000
SAME = 1e-9  # scores closer than this have the same rank
NORMAL_95 = 1.959963984540054
PRIOR_SPREAD = np.pi  # standard deviation of a score with half a win and half a loss
ALIKE = 1e-4  # scores and variances closer than this, in units of the usual error, are equal
SINGLE_JITTER = 1e-5  # the same in single precision
JITTER = 1e-8  # share of the mean variance that makes a projected covariance positive definite
WIDTHS = np.geomspace(0.1, 3.2, 11)  # of the prior of scores, in logits
MOST_AXES = 1500  # items; above, errors of different items count as independent for the shrinkage
LEAST_SHARE = 1e-9  # of the largest eigenvalue, below which an axis has no error


# ---------------------------------------------------------------------------------------- answers


def item_answers(
    scores: Floats,
    votes: Votes,
    *,
    covariance: Floats | None = None,
    draws: NDArray[np.floating[Any]] | None = None,
    clusters: Clusters | None = None,
) -> ItemAnswers:
    """Return scores with intervals, ranks, ranges of ranks and parts.

    Parameters
    ----------
    scores : (n_items,) centred
    votes : Votes
    covariance : (n_items, n_items), optional
        Covariance of the scores.
    draws : (n_draws, n_items), optional
        Draws of the errors, if there is no covariance.
    clusters : Clusters, optional
        With few tens of workers the quantile of Student's t widens the interval.
    """
    if draws is None:
        assert covariance is not None
        covariance, unknown = within_prior(scores, covariance)
        variance = np.maximum(np.diag(covariance), 0.0)
        order, twin = nameless_order(scores, covariance)
        draws = np.empty((N_DRAWS, len(scores)), dtype=_precision(len(scores)))
        inner = covariance[np.ix_(order, order)]
        draws[:, order] = error_draws(inner)
    else:
        variance = (draws**2).mean(axis=0).astype(np.float64)
        unknown, twin = np.zeros(len(scores), dtype=bool), np.arange(len(scores))
    width = NORMAL_95
    if clusters is not None and clusters.by != "votes" and clusters.number >= FEW_CLUSTERS:
        width = student_quantile(clusters.number - 1)
    half = width * np.sqrt(variance)
    rank = ranks(scores)
    if covariance is None or len(scores) > MOST_AXES:
        p_best = best_chances_of_draws(scores, draws)
    else:
        p_best = np.empty(len(scores))
        normal = normal_draws(len(scores))
        p_best[order] = best_chances(scores[order], inner, normal, votes.compared[order])
    low, high, p_best = of_twins(twin, *rank_ranges(scores, draws), p_best)
    best = int(np.argmax(scores))
    shared = 0.0 if covariance is None else covariance[best]
    spread = np.sqrt(np.maximum(variance + variance[best] - 2 * shared, 0.0))
    used = votes.counts.sum(axis=1) > 0
    return ItemAnswers(
        scores=scores, low=scores - half, high=scores + half,
        rank=rank, rank_low=np.minimum(rank, low), rank_high=np.maximum(rank, high),
        p_best=p_best,
        component=parts(votes.left[used], votes.right[used], votes.n_items),
        tied_with_best=scores[best] - scores <= width * spread + SAME,
        covariance=covariance, unknown=unknown,
    )  # fmt: skip


def within_prior(scores: Floats, covariance: Floats) -> tuple[Floats, Mask]:
    """Return the covariance without errors far beyond those before any vote, and whose they were.

    Votes that contradict each other can leave a score without curvature. The prior of half a win
    and half a loss has the standard deviation π; a score that is larger may be wrong by its size.
    """
    most = np.maximum(PRIOR_SPREAD, np.abs(scores))
    spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    unknown = spread > 2 * most
    if not unknown.any():
        return covariance, unknown
    factor = np.where(unknown, most / np.where(unknown, spread, 1.0), 1.0)
    return covariance * factor[:, None] * factor[None, :], unknown


def nameless_order(scores: Floats, covariance: Floats) -> tuple[Ints, Ints]:
    """Return an order of the items that their names do not matter for, and who has a twin in it.

    Items are sorted by score, then by variance, then by their covariances with the scores of
    others. What is equal in all of these is a twin: the second array has the same number for both.
    """
    n = len(scores)
    variance = np.maximum(np.diag(covariance), 0.0)
    size = max(float(np.sqrt(variance.mean())), 1e-300)
    others = covariance @ scores
    keys = ((-scores, size), (variance, size**2), (others, size * float(np.abs(others).max() + 1)))
    group = np.zeros(n, dtype=np.int64)
    order = np.arange(n)
    for key, unit in keys:
        order = np.lexsort((key, group))
        new = np.diff(group[order]) > 0
        new |= np.diff(key[order]) > ALIKE * unit
        group[order] = np.concatenate([[0], np.cumsum(new)])
    return order, group


def of_twins(
    twin: Ints, low: NDArray[np.int64], high: NDArray[np.int64], p_best: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return ranges of ranks and P(best) that are the same for items that only names distinguish.

    Without this, which of two equal items has the wider range depends on the draws.
    """
    count = np.bincount(twin)
    if count.max(initial=1) == 1:
        return low, high, p_best
    lowest = np.full(len(count), np.iinfo(np.int64).max)
    highest = np.zeros(len(count), dtype=np.int64)
    np.minimum.at(lowest, twin, low)
    np.maximum.at(highest, twin, high)
    mean = np.bincount(twin, p_best) / np.maximum(count, 1)
    return lowest[twin], highest[twin], np.asarray(mean[twin])


def _precision(n: int) -> Any:
    return np.float32 if n >= SINGLE else np.float64


def scaled(answers: ItemAnswers, factor: float) -> ItemAnswers:
    """Return answers in other units: scores times a factor above zero."""
    shared = answers.covariance
    return replace(
        answers, scores=factor * answers.scores, low=factor * answers.low,
        high=factor * answers.high, covariance=None if shared is None else factor**2 * shared,
    )  # fmt: skip


def student_quantile(freedom: int) -> float:
    """Return the quantile .975 of Student's t.

    Examples
    --------
    >>> round(student_quantile(9), 3)
    2.262
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))


def ranks(scores: Floats) -> NDArray[np.int64]:
    """Return the rank of each score, 1 for the highest; scores closer than 1e-9 share a rank.

    Examples
    --------
    >>> ranks(np.array([0.5, 2.0, 0.5, 0.1])).tolist()
    [2, 1, 2, 4]
    """
    order = np.argsort(-scores, kind="stable")
    fall = -np.diff(scores[order]) > SAME
    place = np.arange(1, len(scores) + 1)
    place[1:] = np.maximum.accumulate(np.where(fall, place[1:], 1))
    found = np.empty(len(scores), dtype=np.int64)
    found[order] = place
    return found


def error_draws(covariance: Floats) -> NDArray[np.floating[Any]]:
    """Return draws from N(0, covariance) with a fixed seed and their negatives, (n_draws, n_items).

    The Cholesky factor moves little when rounding changes the covariance, so the ranges of ranks do
    not depend on the order of the rows.
    """
    from scipy.linalg import blas, cholesky

    n = len(covariance)
    dtype = _precision(n)
    scale = max(float(np.trace(covariance)) / n, 1e-300)
    jitter = (JITTER if dtype is np.float64 else SINGLE_JITTER) * scale
    factor = cholesky(covariance + jitter * np.eye(n), lower=True).astype(dtype)
    z = _normal(n)
    product = blas.strmm if dtype is np.float32 else blas.dtrmm
    # In Fortran's order zᵀ is the stored array: this is factor @ zᵀ, half the work of a product.
    half = product(1.0, factor, z.T, lower=True, overwrite_b=True).T
    return np.concatenate([half, -half])


def normal_draws(n: int) -> NDArray[np.floating[Any]]:
    """Return standard normal draws with a fixed seed and their negatives, (n_draws, n)."""
    half = _normal(n)
    return np.concatenate([half, -half])


def _normal(n: int) -> NDArray[np.floating[Any]]:
    return np.random.default_rng(0).standard_normal((N_DRAWS // 2, n), dtype=_precision(n))


def rank_ranges(
    scores: Floats, draws: NDArray[np.floating[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the 95% range of the rank of each item.

    Parameters
    ----------
    scores : (n_items,)
    draws : (n_draws, n_items)
        Draws of the errors of the scores.
    """
    n_draws, n = draws.shape
    order = _descending(scores.astype(draws.dtype) + draws)
    dtype = np.int16 if n < np.iinfo(np.int16).max else np.int32
    place = np.empty((n_draws, n), dtype=dtype)
    place[np.arange(n_draws)[:, None], order] = np.arange(1, n + 1, dtype=dtype)
    first, last = int(0.025 * n_draws), int(np.ceil(0.975 * n_draws)) - 1
    ends = np.sort(np.ascontiguousarray(place.T), axis=1, kind="stable")  # by radix
    return ends[:, first].astype(np.int64), ends[:, last].astype(np.int64)


def _descending(values: NDArray[np.floating[Any]]) -> NDArray[np.integer[Any]]:
    """Return the order of each row, the largest first.

    In single precision, values are rounded to the bits that the place leaves free in one key of 32
    bits: at 1000 items, to a four-millionth of their range.
    """
    n = values.shape[1]
    if values.dtype != np.float32 or n > MOST_DENSE:
        return np.argsort(-values, axis=1)
    bits = max(n - 1, 1).bit_length()
    top, bottom = float(values.max()), float(values.min())
    scale = (2.0 ** (32 - bits) - 257) / max(top - bottom, 1e-30)
    keys = ((np.float32(top) - values) * np.float32(scale)).astype(np.uint32)
    keys <<= np.uint32(bits)
    keys |= np.arange(n, dtype=np.uint32)
    keys.sort(axis=1)
    return (keys & np.uint32((1 << bits) - 1)).astype(np.int32)


def item_findings(answers: ItemAnswers, items: NDArray[Any]) -> tuple[Finding, ...]:
    """Return findings on items that votes do not compare with the others, or do not tell apart."""
    return (*_separate_parts(answers, items), *_not_comparable(answers, items))


def _not_comparable(answers: ItemAnswers, items: NDArray[Any]) -> tuple[Finding, ...]:
    if answers.unknown is None or not answers.unknown.any():
        return _nothing_told(answers, items)
    ids = items[answers.unknown]
    return (
        Finding(
            "not-comparable", "medium", len(ids) / len(items), tuple(ids[:10].tolist()),
            f"The votes contradict each other, so that they do not say where {describe_ids(ids)} "
            "stand: these items are not comparable yet, and their intervals are those of items "
            "without votes.",
            "Collect more votes on these items.",
        ),
    )  # fmt: skip


def _nothing_told(answers: ItemAnswers, items: NDArray[Any]) -> tuple[Finding, ...]:
    """Return the finding that every item may still have every rank."""
    n = len(items)
    if n < 2 or (answers.rank_low > 1).any() or (answers.rank_high < n).any():
        return ()
    return (
        Finding(
            "not-comparable", "low", 1.0, tuple(items[:10].tolist()),
            f"Every item may still have every rank from 1 to {n}: the items are not comparable "
            "yet.",
            "Collect more votes.",
        ),
    )  # fmt: skip


def _separate_parts(answers: ItemAnswers, items: NDArray[Any]) -> tuple[Finding, ...]:
    """Return a finding if several parts of two items or more share no comparison."""
    size = np.bincount(answers.component)
    several = int((size >= 2).sum())
    if several < 2:
        return ()
    small = tuple(items[answers.component > 0][:10].tolist())
    return (
        Finding(
            "separate-parts", "medium", float(several), small,
            f"The items fall into {several} parts that nobody compared with each other; scores of "
            "different parts are comparable through the prior only.",
            "Collect votes between the parts, or rank each part by itself (column component).",
        ),
    )  # fmt: skip


def best_chances(
    scores: Floats,
    covariance: Floats,
    normal: NDArray[np.floating[Any]],
    compared: NDArray[np.bool_],
    widths: Floats = WIDTHS,
) -> Floats:
    """Return the probability of each item to be the best, (n_items,).

    Parameters
    ----------
    scores : (n_items,)
    covariance : (n_items, n_items)
        Covariance of the scores.
    normal : (n_draws, n_items)
        Standard normal draws.
    compared : (n_items,) bool
        Items with comparisons; only their level is not observed.
    widths : (n_widths,)
        Grid of k.

    Examples
    --------
    >>> normal = np.random.default_rng(0).standard_normal((500, 2))
    >>> normal = np.concatenate([normal, -normal])
    >>> two, both = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.ones(2, bool)
    >>> best_chances(np.zeros(2), two, normal, both).tolist()
    [0.5, 0.5]
    """
    from scipy.linalg import eigh

    level = np.where(compared, 1.0, 0.0) / max(np.sqrt(compared.sum()), 1.0)
    centred = covariance - np.outer(covariance @ level, level)
    centred = centred - np.outer(level, level @ centred)
    values, axes = eigh((centred + centred.T) / 2)
    kept = np.arange(len(values)) != np.argmax(np.abs(level @ axes))
    values, axes = np.maximum(values[kept], LEAST_SHARE * max(values[-1], 1e-300)), axes[:, kept]
    at = axes.T @ (scores - level * (level @ scores))
    width = _drawn_widths(at, values, len(normal), widths)
    share = width[:, None] ** 2 / (width[:, None] ** 2 + values)
    # The symmetric root V^½ = U √λ Uᵀ does not depend on the signs and the order of the axes.
    noise = (normal @ axes) * np.sqrt(share * values)
    return _shares((share * at + noise) @ axes.T)


def best_chances_of_draws(
    scores: Floats, draws: NDArray[np.floating[Any]], widths: Floats = WIDTHS
) -> Floats:
    """Return the same from draws of the errors, which are shrunk item by item.

    Parameters
    ----------
    scores : (n_items,)
    draws : (n_draws, n_items)
        Draws of the errors of the scores.
    widths : (n_widths,)
        Grid of k.
    """
    variance = np.maximum((draws**2).mean(axis=0, dtype=np.float64), 1e-300)
    width = _drawn_widths(scores, variance, len(draws), widths).astype(draws.dtype)
    square = (width**2)[:, None]
    share = square / (square + variance.astype(draws.dtype))
    return _shares(share * scores.astype(draws.dtype) + np.sqrt(share) * draws)


def _drawn_widths(at: Floats, variance: Floats, n_draws: int, widths: Floats) -> Floats:
    """Return a width for each draw, in proportion to the posterior of the widths.

    Draws and their negatives, in the two halves, have the same widths, spread evenly over a half.
    """
    total = variance + widths[:, None] ** 2
    logs = -0.5 * (np.log(total) + at**2 / total).sum(axis=1) - 0.5 * np.log(widths) ** 2
    weight = np.exp(logs - logs.max())
    half = max(n_draws // 2, 1)
    place = np.searchsorted(np.cumsum(weight) / weight.sum(), (np.arange(half) + 0.5) / half)
    found = widths[np.minimum(place, len(widths) - 1)]
    return np.resize(found, n_draws)


def _shares(values: NDArray[np.floating[Any]]) -> Floats:
    best = values.argmax(axis=1)
    return np.bincount(best, minlength=values.shape[1]) / len(values)
