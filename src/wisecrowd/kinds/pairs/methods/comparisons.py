r"""Comparisons of items: votes as plain arrays, the virtual item, connected parts, clusters.

A vote compares the items ``l`` (left) and ``r`` (right); its gap is :math:`d = s_l - s_r`. Methods
for pairs share the virtual item, which keeps scores finite on any data: every item has ``prior``
wins and ``prior`` losses against an item with score 0,

.. math:: \lambda \sum_a [\log \sigma(s_a) + \log \sigma(-s_a)].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.statistics import log_sigmoid, sigmoid
from wisecrowd.core.types import Floats, Ints
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.outcomes import TIE

DENSE_TABLE = 1 << 22  # pairs of items that are counted in a table; more are sorted


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes in plain arrays; one row is a vote, or all votes on a pair.

    Attributes
    ----------
    left, right : (n_rows,) int
        Codes of the items.
    worker : (n_rows,) int, optional
        None if rows are pairs.
    counts : (n_rows, 3) float
        Weight of the votes for left, for right and for a tie.
    n_items, n_workers : int
    """

    left: Ints
    right: Ints
    worker: Ints | None
    counts: Floats
    n_items: int
    n_workers: int

    @cached_property
    def halved(self) -> Floats:
        """(n_rows, 2) weight of the wins of left and right; a tie is half a win for each."""
        return self.counts[:, :2] + 0.5 * self.counts[:, 2:]

    @cached_property
    def total(self) -> float:
        """Weight of all votes."""
        return float(self.counts.sum())

    @cached_property
    def compared(self) -> NDArray[np.bool_]:
        """(n_items,) whether an item takes part in a vote of positive weight."""
        used = self.halved.sum(axis=1)
        n = self.n_items
        return np.bincount(self.left, used, n) + np.bincount(self.right, used, n) > 0

    def gap(self, scores: Floats) -> Floats:
        """Return the score of the left item minus that of the right one, (n_rows,)."""
        return scores[self.left] - scores[self.right]

    def item_sums(self, values: Floats) -> Floats:
        """Return (n_items,) sums of values, positive for left and negative for right items."""
        n = self.n_items
        found = np.bincount(self.left, values, n) - np.bincount(self.right, values, n)
        return found.astype(np.float64)


def single_votes(data: CrowdPairs, *, ties: str = "half") -> Votes:
    """Return one row per vote, in the order of the data.

    Parameters
    ----------
    data : CrowdPairs
    ties : {"half", "drop"}
        "drop" gives ties the weight 0.
    """
    counts = np.zeros((data.n_annotations, 3))
    counts[np.arange(data.n_annotations), data.outcome] = data.weights
    if ties == "drop":
        counts[:, TIE] = 0
    return Votes(data.left, data.right, data.worker, counts, data.n_items, data.n_workers)


def pair_votes(data: CrowdPairs, *, ties: str = "half") -> Votes:
    """Return one row per pair of items, whichever side they were on; left is the lower code.

    Examples
    --------
    >>> votes = CrowdPairs.from_arrays(None, None, ["x", "y"], ["y", "x"], ["left", "tie"])
    >>> found = pair_votes(votes)
    >>> found.left.tolist(), found.right.tolist(), found.counts.tolist()
    ([0], [1], [[1.0, 0.0, 1.0]])
    """
    n = data.n_items
    turned = data.left > data.right
    low = np.where(turned, data.right, data.left).astype(np.int64)
    cell = low * n + np.where(turned, data.left, data.right)
    if n * n <= DENSE_TABLE:
        size = n * n
    else:
        found, cell = np.unique(cell, return_inverse=True)
        size = len(found)
    # Left wins of the lower item have an even place: outcome 0 or 1, exchanged if turned.
    won = np.where(data.outcome == TIE, np.int64(TIE), data.outcome ^ turned)
    weight = data.weight  # without weights, counting is faster and exact
    flat = np.bincount(cell * 3 + won, weight, 3 * size).reshape(size, 3)
    if n * n <= DENSE_TABLE:
        found = np.flatnonzero(np.bincount(cell, minlength=size))
        flat = flat[found]
    counts = flat.astype(np.float64)
    if ties == "drop":
        counts[:, TIE] = 0
    left, right = np.divmod(found, n)
    return Votes(left, right, None, counts, n, data.n_workers)


# ------------------------------------------------------------------------------- the virtual item


def virtual_item(scores: Floats, prior: float) -> tuple[float, Floats, Floats]:
    """Return the log prior of scores, its gradient and minus its second derivative, (n_items,)."""
    p = sigmoid(scores)
    value = prior * float((log_sigmoid(scores) + log_sigmoid(-scores)).sum())
    return value, prior * (1 - 2 * p), 2 * prior * p * (1 - p)


def centred(scores: Floats, compared: NDArray[np.bool_]) -> Floats:
    """Return scores with mean 0 over compared items; the others get 0, about them is no news."""
    return np.where(compared, scores - scores[compared].mean(), 0.0)


# --------------------------------------------------------------------------------- connected parts


def parts(left: Ints, right: Ints, n_items: int) -> NDArray[np.int64]:
    """Return the connected part of each item, the largest part first, then by its first item.

    Examples
    --------
    >>> parts(np.array([1, 3]), np.array([2, 4]), 6).tolist()
    [2, 0, 0, 1, 1, 3]
    """
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    edges = sparse.coo_matrix((np.ones(len(left)), (left, right)), shape=(n_items, n_items))
    count, label = connected_components(edges, directed=False)
    size = np.bincount(label, minlength=count)
    first = np.full(count, n_items)
    np.minimum.at(first, label, np.arange(n_items))
    place = np.empty(count, dtype=np.int64)
    place[np.lexsort((first, -size))] = np.arange(count)
    found: NDArray[np.int64] = place[label]
    return found


def is_strongly_connected(votes: Votes) -> bool:
    """Return whether every compared item beats every other one, directly or through others."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    wins = votes.halved
    beats = np.flatnonzero(wins[:, 0] > 0), np.flatnonzero(wins[:, 1] > 0)
    source = np.concatenate([votes.left[beats[0]], votes.right[beats[1]]])
    target = np.concatenate([votes.right[beats[0]], votes.left[beats[1]]])
    shape = (votes.n_items, votes.n_items)
    edges = sparse.coo_matrix((np.ones(len(source)), (source, target)), shape=shape)
    _, label = connected_components(edges, directed=True, connection="strong")
    return len(np.unique(label[votes.compared])) == 1


def require_votes(votes: Votes, prior: float, name: str = "prior") -> None:
    """Refuse votes without weight, and no prior where the maximum likelihood does not exist."""
    if not votes.compared.any():
        raise DataError("No vote has a weight above zero; give at least one.")
    if prior == 0 and not is_strongly_connected(votes):
        raise DataError(
            f"Without a {name}, some items have infinite scores: they only win, only lose, or are "
            f"not compared with the others; give {parameter(name, 0.5)}."
        )


# --------------------------------------------------------------------------------- worker accuracy


def agreement(data: CrowdPairs, scores: Floats) -> tuple[Floats, Floats]:
    """Return the share of each worker's votes for the item with the higher score, and its error.

    A tie, and a vote on items with equal scores, is half an agreement. The share has one
    agreement and one disagreement added, so that few votes are not taken for certainty.

    Returns
    -------
    accuracy, standard_error : (n_workers,)
    """
    right = np.bincount(data.worker, agreeing(data, scores), data.n_workers)
    return agreement_share(right, np.bincount(data.worker, data.weight, data.n_workers))


def agreeing(data: Any, scores: Floats) -> Floats:
    """Return by how much of its weight each vote is for the item with the higher score."""
    gap = scores[data.left] - scores[data.right]
    better = np.sign(np.where(np.abs(gap) <= 1e-12, 0.0, gap))
    right = 0.5 + 0.5 * better * np.array([1.0, -1.0, 0.0])[data.outcome]
    return np.asarray(right if data.weight is None else right * data.weight)


def agreement_share(right: NDArray[Any], total: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return share and error (n_workers,) from the weight of agreeing votes and of all votes."""
    share = (right + 1) / (total + 2)
    return share, np.sqrt(share * (1 - share) / (total + 3))
