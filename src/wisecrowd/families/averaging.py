r"""Labels as numbers: truths that are weighted averages of one-hot labels and their prior means.

.. math::
    x_{ik} = \frac{\lambda m_{ik} + \sum_j v_{jk} 1\{y_{ij} = k\}}{\lambda + \sum_j v_{jk}}

with a precision :math:`v_{jk}` per worker and class. One pass is O(annotations × classes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.engines.memory import Block, MemoryShards
from wisecrowd.kernels.posteriors import soft_votes

Floats = NDArray[np.float64]

LEAST = 1e-5  # variance of labels that everybody agrees on: no precision is infinite


class Stats(NamedTuple):
    """Additive statistics of one pass.

    Squared errors (J, K), the sum of truths minus their prior means and the number of such terms,
    both (K,), and the sum of squared distances from the prior means.
    """

    errors: Floats
    excess: Floats
    free: Floats
    distance: float


@dataclass(frozen=True, eq=False)
class Params:
    """Worker precisions (J, K), and what the class means have beyond the prior's, (K,)."""

    precision: Floats
    shift: Floats


class Truths:
    """The truths (n, K) of a block's tasks, with the labels as a sparse matrix.

    Parameters
    ----------
    block : Block
    n_workers : int
    means : (R, K)
        The prior means of the rows of the task prior; see :func:`prior_means`.
    """

    def __init__(self, block: Block, n_workers: int, means: Floats) -> None:
        from scipy.sparse import csr_array

        rows = slice(block.indptr[0], block.indptr[-1])
        size = rows.stop - rows.start
        self.worker, self.label, self.cell = (
            x[rows] for x in (block.worker, block.label, block.cell)
        )
        self.weight = np.ones(size) if block.weight is None else block.weight[rows]
        self.task = np.repeat(np.arange(block.n_tasks), np.diff(block.indptr))
        columns = (self.weight, self.worker, block.indptr - rows.start)
        self.votes = csr_array(columns, shape=(block.n_tasks, n_workers))
        self.labelled = np.diff(block.indptr) > 0
        self.mean = np.broadcast_to(
            means[0] if block.prior_index is None else means[block.prior_index],
            (block.n_tasks, means.shape[1]),
        )
        # Impossible classes and gold stay what they are.
        self.free = (self.mean > 0) & (self.mean < 1)
        self.x = np.array(self.mean)

    def update(self, params: Params, task_strength: float) -> None:
        """Set the truths to their weighted averages."""
        n, K = self.x.shape
        each = self.weight * params.precision[self.worker, self.label]
        given = np.bincount(self.task * K + self.label, weights=each, minlength=n * K)
        above = task_strength * (self.mean + params.shift) + given.reshape(n, K)
        average = above / (task_strength + self.votes @ params.precision)
        self.x = np.where(self.free, average, self.mean)

    def stats(self, shift: Floats) -> Stats:
        """Return the additive statistics of the truths."""
        n_workers, K = self.votes.shape[1], self.x.shape[1]
        own = self.weight * (1 - 2 * self.x[self.task, self.label])
        errors = np.bincount(self.cell, weights=own, minlength=n_workers * K)
        errors = self.votes.T @ self.x**2 + errors.reshape(n_workers, K)
        counted = self.free & self.labelled[:, None]
        excess = np.where(counted, self.x - self.mean, 0.0)
        distance = (np.where(counted, excess - shift, 0.0) ** 2).sum()
        # The sum of squares may come out below zero by rounding.
        return Stats(np.maximum(errors, 0), excess.sum(0), counted.sum(0) * 1.0, float(distance))


def prior_means(log_rows: Floats) -> Floats:
    """Return log priors (R, K) as probabilities: the prior means of truths."""
    rows = np.exp(log_rows - log_rows.max(axis=1, keepdims=True))
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def vote_variance(engine: MemoryShards, n_classes: int) -> Floats:
    r"""Return the variance (K,) of one-hot labels around the vote, times :math:`4 (1 - 1 / K)`."""
    variance, total = np.zeros(n_classes), 0.0
    for block in engine.shards():
        votes = soft_votes(block.indptr, block.label, block.weight, n_classes)
        weight = np.diff(block.indptr).astype(np.float64)
        if block.weight is not None:
            task = np.repeat(np.arange(block.n_tasks), np.diff(block.indptr))
            weights = block.weight[block.indptr[0] : block.indptr[-1]]
            weight = np.bincount(task, weights, block.n_tasks).astype(np.float64)
        variance += weight @ (votes * (1 - votes))
        total += weight.sum()
    return np.maximum(4 * (1 - 1 / n_classes) * variance / max(total, 1e-300), LEAST)
