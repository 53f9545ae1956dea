r"""Mean field for clusters of items, with the errors of every worker.

Item a has the posterior :math:`q_a(k)`, and the items l, r of a vote e are in the same cluster with
probability :math:`P_e = \sum_k q_l(k) q_r(k)`. Worker j says "same" of the same with probability
:math:`s_j`, and "different" of different items with :math:`t_j`. Both have Beta priors with mean
:math:`\bar s, \bar t` and a strength of κ votes, and Beta posteriors. The objective is a lower
bound of the log evidence,

.. math:: \sum_e w_e [P_e E \log p(y_e \mid \text{same})
    + (1 - P_e) E \log p(y_e \mid \text{different})]
    + \sum_{ak} q_a(k) \log \frac{\pi_k}{q_a(k)} + \sum_k \log \pi_k
    - \sum_j [\text{KL}(s_j) + \text{KL}(t_j)].

Each step maximises it in one block: rates of workers, shares of clusters, and one item after the
other. The common rates :math:`\bar s, \bar t` are estimated in the first sweeps and then fixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats, Longs
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.kinds.same.container import CrowdSame
from wisecrowd.kinds.same.kernels import Incidence

SAME_RATE, DIFFERENT_RATE = 0.7, 0.75  # P(says same | same), P(says different | different) at first
ROUNDS = 3  # of the order of items: how far away votes may be that tell two items apart
MOST_DENSE = 500  # items up to which all eigenvectors are computed
KMEANS_STARTS, KMEANS_ROUNDS = 10, 50
MANY_ROWS = 5_000  # from which k-means makes fewer starts
CERTAINTY = 0.8  # of a start in its clusters


FREE_SWEEPS = 20  # sweeps in which the common rates are estimated
COMMON_VOTES = 10.0  # votes at the usual rates that are added to the counts of all workers
STILL = 1e-6  # change of the posterior that counts as none


class Rates(NamedTuple):
    """Beta posteriors of the rates of every worker, and the means of their priors."""

    same: Floats  # (n_workers, 2) counts of right and wrong answers to pairs of the same
    different: Floats  # (n_workers, 2) counts of right and wrong answers to different pairs
    common: Floats  # (2,) means of the priors

    def means(self) -> tuple[Floats, Floats]:
        """Return P(says same | same) and P(says different | different) of every worker."""
        same, different = self.same, self.different
        return same[:, 0] / same.sum(axis=1), different[:, 0] / different.sum(axis=1)


class ClusterRun(NamedTuple):
    """Result of a run: posterior (n_items, n_clusters), shares of clusters, rates, objective."""

    q: Floats
    share: Floats
    rates: Rates
    history: tuple[float, ...]
    n_iter: int
    converged: bool

    @property
    def objective(self) -> float:
        """The last value of the objective."""
        return self.history[-1]


@dataclass(frozen=True, eq=False)
class ClusterModel:
    """The steps of the mean field.

    Attributes
    ----------
    votes : SameVotes
    strength : float
        Votes at the common rates that are added to those of every worker.
    kernels : module
        Kernels of the family ``same_clusters``.
    """

    votes: SameVotes
    strength: float
    kernels: Any

    def usual_rates(self) -> Rates:
        """Return the rates before any vote is seen."""
        n, common = self.votes.n_workers, np.array([SAME_RATE, DIFFERENT_RATE])
        same, different = (np.tile(self._prior(rate), (n, 1)) for rate in common)
        return Rates(same, different, common)

    def _prior(self, rate: float) -> Floats:
        """Return the counts (2,) of right and wrong answers that stand for the prior."""
        return self.strength * np.array([rate, 1 - rate])

    def together(self, q: Floats) -> Floats:
        """Return the probability (n_votes,) that the items of a vote share a cluster."""
        found = self.kernels.same_probability(self.votes.left, self.votes.right, q)
        return np.asarray(np.clip(found, 0.0, 1.0))

    def rate_step(self, q: Floats, common: Floats | None) -> Rates:
        """Return the rates of workers; the common ones too, unless they are given."""
        together, yes = self.together(q), self.votes.same
        same = self._counts(together * yes, together * ~yes)
        different = self._counts((1 - together) * ~yes, (1 - together) * yes)
        if common is None:
            hits = np.array([same[:, 0].sum(), different[:, 0].sum()])
            seen = np.array([same.sum(), different.sum()])
            usual = np.array([SAME_RATE, DIFFERENT_RATE])
            common = (hits + COMMON_VOTES * usual) / (seen + COMMON_VOTES)
        return Rates(same + self._prior(common[0]), different + self._prior(common[1]), common)

    def _counts(self, right: Floats, wrong: Floats) -> Floats:
        """Return (n_workers, 2) sums over the votes of each worker."""
        return np.stack([self.votes.worker_sums(x) for x in (right, wrong)], axis=1)

    def share_step(self, q: Floats) -> Floats:
        """Return the shares of clusters, with one item added to each."""
        size = q[self.votes.order].sum(axis=0) + 1
        return np.asarray(size / size.sum())

    def evidence(self, rates: Rates) -> Floats:
        """Return the weighted log-likelihood ratio (n_votes,) of each vote for "same"."""
        same, other = self._vote_logs(rates)
        return self.votes.weight * (same - other)

    def _vote_logs(self, rates: Rates) -> tuple[Floats, Floats]:
        """Return the expected log p(vote | same) and log p(vote | different)."""
        from scipy.special import digamma

        yes, j = self.votes.same, self.votes.worker
        same, other = (
            digamma(counts) - digamma(counts.sum(axis=1))[:, None]
            for counts in (rates.same, rates.different)
        )
        return np.where(yes, same[j, 0], same[j, 1]), np.where(yes, other[j, 1], other[j, 0])

    def item_evidence(self, rates: Rates, q: Floats) -> Floats:
        """Return the evidence (n_items, n_clusters) of the votes of each item, given the others."""
        from scipy import sparse

        votes, n = self.votes, self.votes.n_items
        entries = self.evidence(rates), (votes.left, votes.right)
        matrix = sparse.coo_matrix(entries, shape=(n, n)).tocsr()
        return np.asarray(matrix @ q + matrix.T @ q)

    def item_step(self, q: Floats, share: Floats, rates: Rates) -> float:
        """Update the posterior in place, one item after the other; return the largest change."""
        votes = self.votes
        change: float = self.kernels.update_items(
            votes.incidence, votes.order, self.evidence(rates), np.log(share), q
        )
        q[votes.without_votes] = share
        return change

    def objective(self, q: Floats, share: Floats, rates: Rates) -> float:
        """Return the objective."""
        votes = self.votes
        together = self.together(q)
        same, other = self._vote_logs(rates)
        found = float(votes.weight @ (together * same + (1 - together) * other))
        rows = q[votes.order]
        found += float((rows * (np.log(share) - np.log(np.maximum(rows, 1e-300)))).sum())
        found += float(np.log(share).sum())
        for counts, rate in zip(rates[:2], rates.common, strict=True):
            found -= float(_divergence(counts, self._prior(rate)).sum())
        return found

    def alone(self) -> ClusterRun:
        """Return the run with one cluster: each worker says "same" at a rate of his own."""
        return self.run(np.ones((self.votes.n_items, 1)), FREE_SWEEPS, 0.0)

    def run(self, start: Floats, max_iter: int, tol: float) -> ClusterRun:
        """Return the local optimum that a start leads to."""
        q = np.ascontiguousarray(start)
        rates, share = self.usual_rates(), self.share_step(q)
        history: list[float] = []
        common: Floats | None = None
        converged = False
        for sweep in range(max_iter):
            if sweep > 0:
                rates, share = self.rate_step(q, common), self.share_step(q)
            change = self.item_step(q, share, rates)
            if common is None:
                if sweep + 1 >= min(FREE_SWEEPS, max_iter - 1) or (sweep and change < STILL):
                    common = rates.common
                continue
            history.append(self.objective(q, share, rates))
            report(Progress(sweep + 1, max_iter, history[-1]))
            gain = history[-1] - history[-2] if len(history) > 1 else np.inf
            if change < STILL or gain < tol * abs(history[-1]):
                converged = True
                break
        history = history or [self.objective(q, share, rates)]
        return ClusterRun(q, share, rates, tuple(history), sweep + 1, converged)


def _divergence(counts: Floats, prior: Floats) -> Floats:
    """Return the divergence (n_workers,) of Beta posteriors from the prior; 0 without votes."""
    from scipy.special import betaln, digamma

    more = counts - prior
    found = betaln(prior[0], prior[1]) - betaln(counts[:, 0], counts[:, 1])
    found += (more * digamma(counts)).sum(axis=1) - more.sum(axis=1) * digamma(counts.sum(axis=1))
    return np.asarray(found)


@dataclass(frozen=True, eq=False)
class SameVotes:
    """Votes with a positive weight.

    Attributes
    ----------
    left, right, worker : (n_votes,) int
    same : (n_votes,) bool
    weight : (n_votes,)
    n_items, n_workers : int
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    worker: NDArray[np.int32]
    same: NDArray[np.bool_]
    weight: Floats
    n_items: int
    n_workers: int

    @classmethod
    def of(cls, data: CrowdSame) -> SameVotes:
        """Return the votes of the data that have a weight."""
        use = data.weights > 0
        return cls(
            data.left[use], data.right[use], data.worker[use], data.is_same[use],
            data.weights[use], data.n_items, data.n_workers,
        )  # fmt: skip

    @cached_property
    def incidence(self) -> Incidence:
        """The votes of every item."""
        item = np.concatenate([self.left, self.right])
        order = np.argsort(item, kind="stable")
        indptr = np.append(0, np.cumsum(np.bincount(item, minlength=self.n_items)))
        other = np.concatenate([self.right, self.left])[order]
        return Incidence(indptr, other, (order % len(self.left)).astype(np.int64))

    @cached_property
    def degree(self) -> Floats:
        """(n_items,) weight of the votes of each item."""
        return self._sums(self.weight)

    @cached_property
    def order(self) -> Longs:
        """Items with votes in an order that depends on the votes, not on names.

        Items are sorted by a number that is refined in rounds by those of the items they were
        compared with. Items that the votes do not tell apart are in the order of their ids.
        """
        degree = self.degree
        colour = np.ones(self.n_items)
        for _ in range(ROUNDS):
            sums = [self._sums(self.weight * kind, colour) for kind in (self.same, ~self.same)]
            mixed = np.sin(1.0 + sums[0]) + np.sqrt(2) * np.cos(1.0 + sums[1])
            colour = np.round(2.0 + mixed, 9)
        order = np.lexsort((colour, np.round(degree, 9)))
        return order[degree[order] > 0]

    @cached_property
    def without_votes(self) -> Longs:
        """Items that nobody compared."""
        return np.setdiff1d(np.arange(self.n_items), self.order)

    def _sums(self, values: Floats, of_other: Floats | None = None) -> Floats:
        """Return (n_items,) sums over the votes of each item."""
        left = values if of_other is None else values * of_other[self.right]
        right = values if of_other is None else values * of_other[self.left]
        n = self.n_items
        sums = np.bincount(self.left, left, n) + np.bincount(self.right, right, n)
        return np.asarray(sums, dtype=np.float64)

    def worker_sums(self, values: Floats) -> Floats:
        """Return (n_workers,) sums over the votes of each worker."""
        sums = np.bincount(self.worker, values * self.weight, self.n_workers)
        return np.asarray(sums, dtype=np.float64)


def spectral_points(votes: SameVotes, size: int) -> Floats:
    """Return (n, size) leading eigenvectors of the signed votes, for the items of ``votes.order``.

    Votes count by their log-likelihood ratio at usual rates of errors. The matrix is normalised
    by the degrees plus their mean, so that items with few votes do not dominate.
    """
    from scipy import sparse

    yes = np.log(SAME_RATE / (1 - DIFFERENT_RATE))
    no = np.log((1 - SAME_RATE) / DIFFERENT_RATE)
    value = votes.weight * np.where(votes.same, yes, no)
    place = np.full(votes.n_items, -1)
    place[votes.order] = np.arange(len(votes.order))
    n = len(votes.order)
    rows, columns = place[votes.left], place[votes.right]
    half = sparse.coo_matrix((value, (rows, columns)), shape=(n, n)).tocsr()
    matrix = half + half.T
    degree = np.asarray(abs(matrix).sum(axis=1)).ravel()
    scale = sparse.diags(1 / np.sqrt(degree + degree.mean() + 1e-12))
    matrix = scale @ matrix @ scale
    size = min(size, n)
    if n <= max(MOST_DENSE, 2 * size):
        vectors = np.linalg.eigh(matrix.toarray())[1][:, ::-1]
    else:
        from scipy.sparse.linalg import eigsh

        values, vectors = eigsh(matrix, size, which="LA", v0=np.ones(n) + np.arange(n) / n)
        vectors = vectors[:, np.argsort(-values)]
    return np.ascontiguousarray(vectors[:, :size])


def fewer_starts(usual: int, size: int, large: int) -> int:
    """Return how many starts to make: fewer if the data are large, two at least.

    Examples
    --------
    >>> [fewer_starts(8, size, 20_000) for size in (100, 20_000, 40_000, 1_000_000)]
    [8, 8, 4, 2]
    """
    return max(min(usual, 2), min(usual, usual * large // max(size, 1)))


def kmeans(points: Floats, n_clusters: int, rng: np.random.Generator) -> Longs:
    """Return the best of ten clusterings (n,) of the rows, after scaling them to length one.

    Of many rows, it is the best of fewer.
    """
    length = np.sqrt((points**2).sum(axis=1, keepdims=True))
    rows = points / np.maximum(length, 1e-12)
    best: tuple[float, Longs] | None = None
    for _ in range(fewer_starts(KMEANS_STARTS, len(rows), MANY_ROWS)):
        cost, code = _one_kmeans(rows, n_clusters, rng)
        if best is None or cost < best[0] - 1e-9:
            best = cost, code
    assert best is not None
    return best[1]


def _one_kmeans(rows: Floats, n_clusters: int, rng: np.random.Generator) -> tuple[float, Longs]:
    """Return cost and clusters of Lloyd's algorithm from a k-means++ start."""
    centres = rows[[int(rng.integers(len(rows)))]]
    while len(centres) < n_clusters:
        away = _distances(rows, centres).min(axis=1)
        total = np.cumsum(away)
        chosen = int(np.searchsorted(total, rng.random() * total[-1], side="right"))
        centres = np.vstack([centres, rows[min(chosen, len(rows) - 1)]])
    code = np.zeros(len(rows), dtype=np.int64)
    for _ in range(KMEANS_ROUNDS):
        previous, code = code, _distances(rows, centres).argmin(axis=1)
        if np.array_equal(previous, code):
            break
        for k in range(n_clusters):
            mine = code == k
            if mine.any():
                centres[k] = rows[mine].mean(axis=0)
    return float(_distances(rows, centres).min(axis=1).sum()), code


def _distances(rows: Floats, centres: Floats) -> Floats:
    squares = (rows**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1)[None, :]
    return np.asarray(np.maximum(squares - 2 * rows @ centres.T, 0.0))


def starting_posterior(votes: SameVotes, code: Longs, n_clusters: int) -> Floats:
    """Return (n_items, n_clusters) probabilities that favour a cluster of each item with votes."""
    q = np.full((votes.n_items, n_clusters), 1 / n_clusters)
    q[votes.order] = (1 - CERTAINTY) / n_clusters
    q[votes.order, code] += CERTAINTY
    return q


def random_clusters(votes: SameVotes, n_clusters: int, rng: np.random.Generator) -> Longs:
    """Return a random cluster of each item with votes, in the order of the items."""
    return np.asarray(rng.integers(0, n_clusters, len(votes.order)), dtype=np.int64)


def numbered_by_size(votes: SameVotes, q: Floats) -> Floats:
    """Return the posterior with the largest cluster first; equal ones by their first item."""
    size = np.round(q[votes.order].sum(axis=0), 6)
    member = q[votes.order] > 0.5
    first = np.where(member.any(axis=0), member.argmax(axis=0), len(member))
    return np.ascontiguousarray(q[:, np.lexsort((first, -size))])


def component_count(votes: SameVotes) -> tuple[int, Any]:
    """Return the number of connected parts of the votes, and the part of each item."""
    from wisecrowd.kinds.pairs.methods.comparisons import parts

    found = parts(votes.left, votes.right, votes.n_items)
    return len(np.unique(found[votes.order])), found
