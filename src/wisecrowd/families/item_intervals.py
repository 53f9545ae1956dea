r"""Uncertainty of item scores: sandwich covariance, ranges of ranks, chance to be the best.

With the negative Hessian :math:`H` of the penalised log-likelihood, the curvature :math:`\Lambda`
of the prior, and the sums :math:`g_c` of the score vectors of the votes in cluster :math:`c`,

.. math:: V = H^{-1} \Bigl(\sum_c g_c g_c^\top + \Lambda\Bigr) H^{-1}.

:math:`\Lambda` counts the bias towards the prior as error; without it an item with one vote would
look certain. V is projected on scores with sum zero, because nobody observes their level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.ids.packed_sort import stable_order
from wisecrowd.core.item_answers import ItemAnswers
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.core.parameter_checks import check_choice
from wisecrowd.core.rankings import CrowdRankings
from wisecrowd.families.comparisons import Votes, parts

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]
Mask = NDArray[np.bool_]

CLUSTERS = ("auto", "workers", "tasks", "votes")
MOST_DENSE = 5000  # items up to which covariances are dense
FEW_CLUSTERS = 10  # below, clusters only inflate the covariance of votes
N_DRAWS = 2000
FEW_DRAWS = 200  # above MOST_DENSE items
SINGLE = 400  # items from which draws are in single precision
SAME = 1e-9  # scores closer than this have the same rank
NORMAL_95 = 1.959963984540054
PRIOR_SPREAD = np.pi  # standard deviation of a score with half a win and half a loss
ALIKE = 1e-4  # scores and variances closer than this, in units of the usual error, are equal
SINGLE_JITTER = 1e-5  # the same in single precision
JITTER = 1e-8  # share of the mean variance that makes a projected covariance positive definite
BLOCK = 1 << 22  # numbers in a block of cluster sums


# ------------------------------------------------------------------------------------- clusters


@dataclass(frozen=True, eq=False)
class Clusters:
    """Clusters of votes, which may depend on each other inside.

    Attributes
    ----------
    by : {"workers", "tasks", "votes"}
    code : (n_votes,) int, optional
        Cluster of each vote; None if each vote is its own.
    number : int
        Number of clusters with votes.
    finding : Finding, optional
        What the user should know about the choice.
    """

    by: str
    code: Ints | None
    number: int
    finding: Finding | None = None


def check_clusters(value: Any) -> None:
    """Require the name of clusters, for the parameter ``cluster``."""
    check_choice("cluster", value, CLUSTERS)


def choose_clusters(data: CrowdPairs | CrowdRankings, cluster: str) -> Clusters:
    """Return the clusters of the votes; "auto" means workers if there are at least two."""
    active = int((np.bincount(data.worker, data.weights, data.n_workers) > 0).sum())
    found = named_clusters(cluster, active, data.n_annotations)
    if found.by == "workers":
        return replace(found, code=data.worker)
    if found.by == "tasks":
        tasks = int((np.bincount(data.task, data.weights, data.n_tasks) > 0).sum())
        return replace(found, code=data.task, number=tasks)
    return found


def named_clusters(cluster: str, active: int, n_votes: int) -> Clusters:
    """Return the kind of clusters without the codes of votes.

    Parameters
    ----------
    cluster : str
        The parameter of the user.
    active, n_votes : int
        Workers with votes, and votes.
    """
    if cluster == "auto":
        cluster = "workers" if active >= 2 else "votes"
    few = _few_workers(active) if cluster == "workers" and 2 <= active < FEW_CLUSTERS else None
    return Clusters(cluster, None, active if cluster == "workers" else n_votes, few)


def _few_workers(number: int) -> Finding:
    return Finding(
        "few-workers", "info", float(number), (),
        f"There are {number} workers, too few to estimate how much they differ; intervals are those"
        " of independent votes, widened by the mean effect of workers.",
        f"Ask {FEW_CLUSTERS} workers or more.",
    )  # fmt: skip


def cluster_meat(
    left: Ints, right: Ints, pull: Floats, code: Ints, extra: Floats, n: int
) -> Floats:
    """Return the sum over clusters of g gᵀ, (n + g, n + g).

    Parameters
    ----------
    left, right : (n_votes,) int
    pull : (n_votes,) derivative of the log-likelihood of each vote in the gap, weighted
    code : (n_votes,) int
        Cluster of each vote.
    extra : (n_votes, g) derivatives in shared parameters, weighted
    n : int
        Number of items.
    """
    count = np.bincount(code)
    used = np.flatnonzero(count)
    place = (np.cumsum(count > 0) - 1)[code]
    width = n + extra.shape[1]
    order = stable_order(place, len(used))
    ends = np.append(0, np.cumsum(count[used]))
    step = max(1, BLOCK // width)

    def sums() -> Iterator[Floats]:
        for start in range(0, len(used), step):
            stop = min(start + step, len(used))
            rows = order[ends[start] : ends[stop]]
            at = (place[rows] - start) * width
            size = (stop - start) * width
            flat = np.bincount(at + left[rows], pull[rows], size)
            flat -= np.bincount(at + right[rows], pull[rows], size)
            for k in range(extra.shape[1]):
                flat += np.bincount(at + n + k, extra[rows, k], size)
            yield flat.astype(np.float64, copy=False).reshape(-1, width)

    return gram(sums(), width)


def gram(blocks: Iterable[Floats], width: int) -> Floats:
    """Return the sum of bᵀ b over blocks of rows, (width, width)."""
    from scipy.linalg.blas import dsyrk

    total = np.zeros((width, width), order="F")
    for block in blocks:
        total = dsyrk(1.0, block.T, beta=1.0, c=total, overwrite_c=True)
    return np.asarray(np.triu(total) + np.triu(total, 1).T)


# ----------------------------------------------------------------------------------- covariance


def laplacian(votes: Votes, weight: Floats) -> Floats:
    """Return Σ weight (e_l - e_r)(e_l - e_r)ᵀ, (n_items, n_items)."""
    n = votes.n_items
    cell = votes.left.astype(np.int64) * n + votes.right
    one_way = np.bincount(cell, weight, n * n).reshape(n, n)
    found = -(one_way + one_way.T).astype(np.float64)
    found[np.diag_indices(n)] += np.bincount(votes.left, weight, n)
    found[np.diag_indices(n)] += np.bincount(votes.right, weight, n)
    return found


def sparse_laplacian(votes: Votes, weight: Floats) -> Any:
    """Return the same as a sparse matrix."""
    from scipy import sparse

    n = votes.n_items
    one_way = sparse.csr_matrix((weight, (votes.left, votes.right)), shape=(n, n))
    degree = np.bincount(votes.left, weight, n) + np.bincount(votes.right, weight, n)
    return (sparse.diags(degree) - one_way - one_way.T).tocsr()


def inverse(matrix: Floats) -> Floats:
    """Return the inverse of a positive definite matrix; flat directions get a large variance."""
    from scipy.linalg import eigh
    from scipy.linalg.lapack import dpotrf, dpotri

    factor, failed = dpotrf(matrix, lower=True)
    if not failed:
        half, failed = dpotri(factor, lower=True, overwrite_c=True)
    if not failed:
        half = np.tril(half)
        return np.asarray(half + np.tril(half, -1).T)
    values, vectors = eigh(matrix)
    values = np.maximum(values, 1e-8 * max(float(values[-1]), 1e-300))
    return np.asarray((vectors / values) @ vectors.T)


def sandwich(bread: Floats, meat: Floats, compared: Mask) -> Floats:
    """Return the covariance of centred scores, (n_items, n_items).

    It is B meat Bᵀ, where B are the rows of items of the bread, centred over compared items. Many
    items are multiplied in single precision, after centring, with relative errors of about 1e-6.

    Parameters
    ----------
    bread, meat : (n_items + g, n_items + g)
    compared : (n_items,) bool
        Items without comparisons keep their variance and have no covariances.
    """
    n = len(compared)
    rows = bread[:n].copy()
    rows[compared] -= rows[compared].mean(axis=0)
    if n >= SINGLE:
        low = rows.astype(np.float32)
        found = (low @ meat.astype(np.float32) @ low.T).astype(np.float64)
    else:
        found = rows @ meat @ rows.T
    lone = np.flatnonzero(~compared)
    if len(lone):
        variance = found[lone, lone]
        found[lone] = 0
        found[:, lone] = 0
        found[lone, lone] = variance
    return np.asarray((found + found.T) / 2)


def humble(by_votes: Floats, by_clusters: Floats, number: int) -> Floats:
    """Return the covariance by clusters, never narrower than that by votes.

    An item whose votes all lie in one cluster has cluster sums near zero, because the gradient is
    zero at the optimum; its variance is that by votes. With few clusters, the covariance by votes
    is widened by the mean ratio of variances instead.
    """
    vote, cluster = np.diag(by_votes), np.diag(by_clusters)
    if number < FEW_CLUSTERS:
        ratio = float(cluster.sum() / max(vote.sum(), 1e-300)) * number / max(number - 1, 1)
        return by_votes * max(1.0, ratio)
    by_clusters = by_clusters * (number / (number - 1))
    factor = np.sqrt(np.maximum(1.0, vote / np.maximum(np.diag(by_clusters), 1e-300)))
    return np.asarray(by_clusters * factor[:, None] * factor[None, :])


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
        draws[:, order] = error_draws(covariance[np.ix_(order, order)])
    else:
        variance = (draws**2).mean(axis=0).astype(np.float64)
        unknown, twin = np.zeros(len(scores), dtype=bool), np.arange(len(scores))
    width = NORMAL_95
    if clusters is not None and clusters.by != "votes" and clusters.number >= FEW_CLUSTERS:
        width = student_quantile(clusters.number - 1)
    half = width * np.sqrt(variance)
    rank = ranks(scores)
    low, high, p_best = of_twins(twin, *rank_ranges(scores, draws))
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
    z = np.random.default_rng(0).standard_normal((N_DRAWS // 2, n), dtype=dtype)
    product = blas.strmm if dtype is np.float32 else blas.dtrmm
    # In Fortran's order zᵀ is the stored array: this is factor @ zᵀ, half the work of a product.
    half = product(1.0, factor, z.T, lower=True, overwrite_b=True).T
    return np.concatenate([half, -half])


def rank_ranges(
    scores: Floats, draws: NDArray[np.floating[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return the 95% range of the rank of each item and its chance to be the best.

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
    p_best = np.bincount(order[:, 0], minlength=n) / n_draws
    return ends[:, first].astype(np.int64), ends[:, last].astype(np.int64), p_best


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
    """Return findings on items that votes do not compare with the others, or not at all."""
    return (*_separate_parts(answers, items), *_not_comparable(answers, items))


def _not_comparable(answers: ItemAnswers, items: NDArray[Any]) -> tuple[Finding, ...]:
    if answers.unknown is None or not answers.unknown.any():
        return ()
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
