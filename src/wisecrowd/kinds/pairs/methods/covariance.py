r"""Covariance of item scores, from clusters of votes that depend on each other.

With the negative Hessian :math:`H` of the penalised log-likelihood, the curvature :math:`\Lambda`
of the prior, and the sums :math:`g_c` of the score vectors of the votes in cluster :math:`c`,

.. math:: V = H^{-1} \Bigl(\sum_c g_c g_c^\top + \Lambda\Bigr) H^{-1}.

:math:`\Lambda` counts the bias towards the prior as error; without it an item with one vote would
look certain. V is projected on scores with sum zero, because nobody observes their level.

Of very many items no dense matrix is made. An error is H⁻¹ u, solved by conjugate gradients, where
u is drawn with the covariance of the gradient: a standard normal number times the summed score
vector of each cluster, and one per item for the prior.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wisecrowd.core.findings import Finding
from wisecrowd.core.ids.packed_sort import stable_order
from wisecrowd.core.parameter_checks import check_choice
from wisecrowd.core.types import Floats, Ints, Mask
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.methods.comparisons import Votes
from wisecrowd.kinds.rankings.container import CrowdRankings

CLUSTERS = ("auto", "workers", "tasks", "votes")
MOST_DENSE = 5000  # items up to which covariances are dense
FEW_CLUSTERS = 10  # below, clusters only inflate the covariance of votes
FEW_DRAWS = 200  # above MOST_DENSE items
SINGLE = 400  # items from which draws are in single precision
BLOCK = 1 << 22  # numbers in a block of cluster sums
TOLERANCE = 1e-6  # relative residual of the solver
MOST_STEPS = 2000
SMALLEST = 1e-9  # curvature of an item without prior and votes


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
    few = few_workers(active) if cluster == "workers" else None
    return Clusters(cluster, None, active if cluster == "workers" else n_votes, few)


def few_workers(
    number: int,
    consequence: str = "intervals are those of independent votes, widened by the mean effect of "
    "workers",
) -> Finding | None:
    """Return a finding on 2 to 9 workers, and what it means for the intervals."""
    if not 2 <= number < FEW_CLUSTERS:
        return None
    return Finding(
        "few-workers", "info", float(number), (),
        f"There are {number} workers, too few to estimate how much they differ; {consequence}.",
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


# ----------------------------------------------------------------------------- very many items


def scores_errors(
    hessian: Any, prior: Floats, votes: Votes, pull: Floats, code: Ints | None, n_draws: int
) -> Floats:
    """Return draws (n_draws, n_items) of the errors of centred scores.

    Parameters
    ----------
    hessian : (n_items, n_items) sparse
        Negative Hessian of the log-likelihood, without the prior.
    prior : (n_items,)
        Curvature of the prior.
    votes : Votes
    pull : (n_rows,)
        Derivative of the log-likelihood of each row in the gap, weighted.
    code : (n_rows,) int, optional
        Cluster of each row; None if each is its own.
    n_draws : int
    """
    from scipy import sparse

    rng = np.random.default_rng(0)
    n, rows = votes.n_items, len(pull)
    cluster = np.arange(rows) if code is None else code
    place = sparse.csr_matrix(
        (np.concatenate([pull, -pull]),
         (np.concatenate([votes.left, votes.right]), np.concatenate([cluster, cluster]))),
        shape=(n, int(cluster.max()) + 1),
    )  # fmt: skip
    u = place @ rng.standard_normal((place.shape[1], n_draws))
    u += np.sqrt(prior)[:, None] * rng.standard_normal((n, n_draws))
    full = (hessian + sparse.diags(np.maximum(prior, SMALLEST))).tocsr()
    errors = conjugate_gradients(full, u)
    errors[votes.compared] -= errors[votes.compared].mean(axis=0)
    return errors.T


def conjugate_gradients(matrix: Any, sides: Floats) -> Floats:
    """Solve for many right-hand sides at once, (n, m), preconditioned by the diagonal.

    Examples
    --------
    >>> from scipy import sparse
    >>> conjugate_gradients(sparse.diags([2.0, 4.0]).tocsr(), np.array([[2.0], [2.0]])).tolist()
    [[1.0], [0.5]]
    """
    scale = 1 / matrix.diagonal()[:, None]
    x, r = np.zeros_like(sides), sides.copy()
    z = scale * r
    p, rz = z.copy(), (r * z).sum(axis=0)
    goal = TOLERANCE**2 * np.maximum(rz, 1e-300)
    for _ in range(MOST_STEPS):
        if (rz <= goal).all():
            break
        image = matrix @ p
        step = rz / np.maximum((p * image).sum(axis=0), 1e-300)
        x += step * p
        r -= step * image
        z = scale * r
        new = (r * z).sum(axis=0)
        p = z + (new / np.maximum(rz, 1e-300)) * p
        rz = new
    return x
