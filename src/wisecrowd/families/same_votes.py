"""Votes on sameness as plain arrays, an order of items that ignores their names, spectral starts.

Clusters are found by updates of one item after the other and by random starts. Both use the order
of :meth:`SameVotes.order`, which depends on the votes alone, so that other names of items lead to
the same clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.same import CrowdSame
from wisecrowd.kernels.same_clusters.reference import Incidence

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SAME_RATE, DIFFERENT_RATE = 0.7, 0.75  # P(says same | same), P(says different | different) at first
ROUNDS = 3  # of the order of items: how far away votes may be that tell two items apart
MOST_DENSE = 500  # items up to which all eigenvectors are computed
KMEANS_STARTS, KMEANS_ROUNDS = 10, 50
MANY_ROWS = 5_000  # from which k-means makes fewer starts
CERTAINTY = 0.8  # of a start in its clusters


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
    def order(self) -> Ints:
        """Items with votes in an order that depends on the votes, not on names.

        Items are sorted by a number that is refined in rounds by those of the items they were
        compared with. Items that the votes do not tell apart are in the order of their ids.
        """
        degree = self._sums(self.weight)
        colour = np.ones(self.n_items)
        for _ in range(ROUNDS):
            sums = [self._sums(self.weight * kind, colour) for kind in (self.same, ~self.same)]
            mixed = np.sin(1.0 + sums[0]) + np.sqrt(2) * np.cos(1.0 + sums[1])
            colour = np.round(2.0 + mixed, 9)
        order = np.lexsort((colour, np.round(degree, 9)))
        return order[degree[order] > 0]

    @cached_property
    def without_votes(self) -> Ints:
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


def kmeans(points: Floats, n_clusters: int, rng: np.random.Generator) -> Ints:
    """Return the best of ten clusterings (n,) of the rows, after scaling them to length one.

    Of many rows, it is the best of fewer.
    """
    length = np.sqrt((points**2).sum(axis=1, keepdims=True))
    rows = points / np.maximum(length, 1e-12)
    best: tuple[float, Ints] | None = None
    for _ in range(fewer_starts(KMEANS_STARTS, len(rows), MANY_ROWS)):
        cost, code = _one_kmeans(rows, n_clusters, rng)
        if best is None or cost < best[0] - 1e-9:
            best = cost, code
    assert best is not None
    return best[1]


def _one_kmeans(rows: Floats, n_clusters: int, rng: np.random.Generator) -> tuple[float, Ints]:
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


def starting_posterior(votes: SameVotes, code: Ints, n_clusters: int) -> Floats:
    """Return (n_items, n_clusters) probabilities that favour a cluster of each item with votes."""
    q = np.full((votes.n_items, n_clusters), 1 / n_clusters)
    q[votes.order] = (1 - CERTAINTY) / n_clusters
    q[votes.order, code] += CERTAINTY
    return q


def random_clusters(votes: SameVotes, n_clusters: int, rng: np.random.Generator) -> Ints:
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
    from wisecrowd.families.comparisons import parts

    found = parts(votes.left, votes.right, votes.n_items)
    return len(np.unique(found[votes.order])), found
