"""Votes compared with scores that their own worker did not influence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from wisecrowd.core.statistics import sigmoid
from wisecrowd.core.types import Floats, Longs
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.methods.comparisons import parts, single_votes, virtual_item
from wisecrowd.kinds.pairs.outcomes import LEFT, TIE

PRIOR = 0.5  # wins and losses of every item against the virtual item
MOST_DENSE = 1500  # items up to which the Hessian is factorised
BLOCK = 500  # workers whose influence is computed at once


@dataclass(frozen=True, eq=False)
class PairView:
    """Votes and the scores of all other workers.

    Attributes
    ----------
    data : CrowdPairs
    scores : (n_items,)
        Bradley-Terry scores of all votes, with a side bias beside them.
    gap : (n_annotations,)
        Score of the left less that of the right item, without the votes of the same worker.
    side, side_error : float
        Log-odds of the left side, and their standard error with workers as clusters.
    vote : (n_annotations,)
        1 for left, -1 for right, 0 for a tie.
    component : (n_items,)
        Connected part of each item, the largest first.
    """

    data: CrowdPairs
    scores: Floats
    gap: Floats
    side: float
    side_error: float
    vote: Floats
    component: Longs

    @cached_property
    def expected(self) -> Floats:
        """(n_annotations,): expected vote, between -1 and 1, without the worker's own votes."""
        return np.asarray(2 * sigmoid(self.gap) - 1)

    @cached_property
    def has_sides(self) -> bool:
        """Whether both sides won votes; otherwise the columns are "chosen" and "rejected"."""
        return bool((self.vote > 0).any() and (self.vote < 0).any())

    @cached_property
    def information(self) -> Floats:
        """(n_workers,): sum of the squared expected votes, the evidence about a worker."""
        total = np.bincount(self.data.worker, self.expected**2, self.data.n_workers)
        return np.asarray(total, dtype=np.float64)

    @cached_property
    def reliability(self) -> Floats:
        """(n_workers,): slope of the votes on the expected ones: 1 honest, 0 random, -1 against."""
        top = np.bincount(self.data.worker, self.vote * self.expected, self.data.n_workers)
        return np.asarray(top / np.maximum(self.information, 1e-12))


def pair_view(data: CrowdPairs, fit: Any = None) -> PairView:
    """Return votes and leave-one-worker-out gaps, by one Newton step from the common fit.

    Examples
    --------
    >>> votes = CrowdPairs.from_arrays(None, ["a", "b"], ["x", "x"], ["y", "y"], ["left", "right"])
    >>> pair_view(votes).gap.round(1).tolist()
    [-0.8, 0.8]
    """
    from wisecrowd.kinds.pairs.methods.bradley_terry import BradleyTerry

    vote = np.where(data.outcome == TIE, 0.0, np.where(data.outcome == LEFT, 1.0, -1.0))
    sided = bool((vote > 0).any() and (vote < 0).any())
    model = BradleyTerry(prior=PRIOR, side=sided)._fit_without_checks(data)
    side = float(model.side_bias_) if sided else 0.0
    error = float(model.side_bias_error_) if sided else float("nan")
    scores = np.asarray(model.scores_)
    gap = _gap_without_worker(data, scores, side, vote)
    component = parts(data.left, data.right, data.n_items)
    return PairView(data, scores, gap, side, error, vote, component)


def _gap_without_worker(data: CrowdPairs, scores: Floats, side: float, vote: Floats) -> Floats:
    """Return the gap of every vote, less the influence of its worker's votes on it."""
    from scipy import sparse

    votes = single_votes(data)
    gap = votes.gap(scores)
    p = sigmoid(gap + side)
    pull = data.weights * ((1 + vote) / 2 - p)
    weight = data.weights * p * (1 - p)
    rows = np.concatenate([data.left, data.right])
    columns = np.tile(data.worker, 2)
    shape = data.n_items, data.n_workers
    gradient = sparse.csc_matrix((np.concatenate([pull, -pull]), (rows, columns)), shape=shape)
    curve = np.maximum(virtual_item(scores, PRIOR)[2], 1e-9)
    found = gap.copy()
    solve = _solver(data, weight, curve)
    view = data.by_worker
    for first in range(0, data.n_workers, BLOCK):
        last = min(first + BLOCK, data.n_workers)
        moved = solve(gradient[:, first:last].toarray())
        mine = view.order[view.indptr[first] : view.indptr[last]]
        at = data.worker[mine] - first
        found[mine] -= moved[data.left[mine], at] - moved[data.right[mine], at]
    return found


def _solver(data: CrowdPairs, weight: Floats, curve: Floats) -> Any:
    """Return a function that multiplies by the inverse Hessian; by its diagonal if it is large."""
    from scipy.linalg import cho_factor, cho_solve

    n = data.n_items
    diagonal = np.bincount(data.left, weight, n) + np.bincount(data.right, weight, n) + curve
    if n > MOST_DENSE:
        return lambda rows: rows / diagonal[:, None]
    cell = data.left.astype(np.int64) * n + data.right
    off = np.bincount(cell, weight, n * n).reshape(n, n)
    hessian = np.diag(diagonal) - off - off.T
    factor = cho_factor(hessian, lower=True)
    return lambda rows: cho_solve(factor, rows)
