r"""Shrunken confusion matrices with task difficulty, in NumPy: the specification.

Conventions as in :mod:`wisecrowd.kinds.classes.kernels.confusion`. A task has a class k
and a difficulty level d, and label y of worker j has the probability

.. math::
    p(y \mid j, k, d) = (1 - \delta_d) \theta_{jk}(y) + \delta_d m(y)

The rates :math:`\theta` that serve an annotation do not contain its own contribution.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels.arguments import TaskLabels, TaskPriors
from wisecrowd.kinds.classes.kernels.posteriors import annotations_of

__all__ = ["hierarchical_step"]

Singles = NDArray[np.float32]


class WorkerCounts(NamedTuple):
    """Expected labels that follow their worker's rates.

    ``cells`` (J·K, K): by cell and class. ``totals`` (J, K): by worker and class. ``weights``
    (J, K): the weight of such a label in the worker's accuracy. ``right``, ``everything`` (J,):
    the weighted sums of correct labels and of all labels.
    """

    cells: Floats
    totals: Floats
    weights: Floats
    right: Floats
    everything: Floats


class RatePrior(NamedTuple):
    r"""The population that every worker's rates shrink to.

    ``wrong[l, k]`` is the share of label ``l`` among wrong labels on class ``k``, zero on the
    diagonal; ``shares`` (K,) are the crowd's label shares. A worker with ``right`` correct labels
    and ``false`` wrong ones is correct with prior odds of ``odds * (right + strength * coin) /
    (false + strength * (1 - coin))``; ``concentration`` is the pseudo-count of a row.
    """

    wrong: Floats
    shares: Floats
    odds: float
    coin: float
    strength: float
    concentration: float


class TaskLevels(NamedTuple):
    """Difficulty levels (D,), each the probability of a label at random, and their log prior."""

    value: Floats
    log_prior: Floats


class TaskBlock(NamedTuple):
    """State of a block, read and overwritten.

    ``own`` (E, K): what each annotation added to the counts of its cell. ``probas`` (n, K): the
    posterior. ``difficulty`` (n,): the expected level.
    """

    own: Singles
    probas: Floats
    difficulty: Floats


class CountSums(NamedTuple):
    """Sums to add to: counts (J·K, K) by cell, class mass (K,), level mass (D,)."""

    cells: Floats
    mass: Floats
    levels: Floats


def hierarchical_step(
    labels: TaskLabels,
    priors: TaskPriors,
    counts: WorkerCounts,
    rates: RatePrior,
    levels: TaskLevels,
    block: TaskBlock,
    sums: CountSums,
    tol: float,
    repeat: Floats | None = None,
) -> tuple[float, int]:
    r"""Update the posteriors of a block, with every label judged by the other labels' counts.

    .. math::
        q_i(k, d) \propto \pi_k h_i(k) \rho_d \prod_{e \in i} \ell_e(k, d)^{w_e}, \qquad
        \text{own}_e(k) = w_e \sum_d q_i(k, d) \frac{(1 - \delta_d) \theta_e(k)}{\ell_e(k, d)}

    Returns the leave-one-out log score of the labels, :math:`-\sum_e \log \sum_{kd} q_i(k, d) /
    \ell_e(k, d)^{w_e}`, and the number of tasks whose posterior moved by at least ``tol``.
    ``repeat`` (n,) tasks share a row: sums count it so often, a label leaves out only its own.
    """
    indptr, worker, label, weight = labels
    rows, task = annotations_of(indptr)
    n, K = block.probas.shape
    own = block.own[rows]
    w = np.ones(len(task)) if weight is None else weight[rows]
    theta = _own_free_rates(worker[rows], label[rows], counts, rates, own)
    chance = rates.shares[label[rows], None]
    scores = np.zeros((n, K, len(levels.value)))
    for d, level in enumerate(levels.value):
        log_lik = w[:, None] * np.log((1 - level) * theta + level * chance)
        for k in range(K):
            scores[:, k, d] = np.bincount(task, log_lik[:, k], n)
    log_prior = priors.rows[0] if priors.row_of is None else priors.rows[priors.row_of]
    scores += (priors.log_class + log_prior)[..., None] + levels.log_prior
    top = scores.max(axis=(1, 2), keepdims=True)
    scores -= top + np.log(np.exp(scores - top).sum(axis=(1, 2), keepdims=True))
    q = np.exp(scores)

    added, left_out = np.zeros_like(theta), np.zeros(len(task))
    log_left_out = np.full(len(task), -np.inf)
    for d, level in enumerate(levels.value):
        lik = (1 - level) * theta + level * chance
        ratio = q[task, :, d] / lik
        added += (1 - level) * theta * ratio
        if weight is None:
            left_out += ratio.sum(axis=1)
        else:
            cavity = np.logaddexp.reduce(scores[task, :, d] - w[:, None] * np.log(lik), axis=1)
            log_left_out = np.logaddexp(log_left_out, cavity)
    if weight is None:
        log_left_out = np.log(left_out)
    own[:] = w[:, None] * added  # rounded once, so that exactly this much is taken out again
    cell = worker[rows].astype(np.int64) * K + label[rows]
    times = (np.diff(indptr) > 0) * (1.0 if repeat is None else repeat)
    for k in range(K):
        sums.cells[:, k] += np.bincount(cell, own[:, k] * times[task], len(sums.cells))
    sums.mass[:] += (q * times[:, None, None]).sum(axis=(0, 2))
    sums.levels[:] += (q * times[:, None, None]).sum(axis=(0, 1))
    probas = q.sum(axis=2)
    moved = np.abs(probas - block.probas).max(axis=1) >= tol
    block.probas[:] = probas
    block.difficulty[:] = q.sum(axis=1) @ levels.value
    return -float((times[task] * log_left_out).sum()), int(times[moved].sum())


def _own_free_rates(
    worker: Ints, label: Ints, counts: WorkerCounts, rates: RatePrior, own: Singles
) -> Floats:
    """Return p(label of e | worker, class) (E, K), from counts without annotation e's share."""
    c, K = rates.concentration, own.shape[1]
    cell = np.maximum(counts.cells[worker.astype(np.int64) * K + label] - own, 0)
    total = np.maximum(counts.totals[worker] - own, 0)
    each = np.arange(len(label))
    weighted = counts.weights[worker] * own
    right = np.maximum(counts.right[worker] - weighted[each, label], 0)
    false = np.maximum(counts.everything[worker] - weighted.sum(axis=1) - right, 0)
    favour = rates.odds * (right + rates.strength * rates.coin)
    against = false + rates.strength * (1 - rates.coin)
    accuracy = favour / (favour + against)
    mean = (1 - accuracy)[:, None] * rates.wrong[label]
    mean[each, label] = accuracy
    return np.asarray((c * mean + cell) / (c + total))
