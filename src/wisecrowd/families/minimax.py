r"""Labels that depend on worker and task alike, through the sum of their logits.

.. math::
    p(y_{ij} = l \mid z_i = k) \propto \exp(\sigma_i[k, l] + \tau_j[k, l]), \qquad
    F = \sum_i \log \sum_k \pi_k \prod_j p(y_{ij} \mid k)
    - \frac{\lambda_w}{2} \sum_j \|\tau_j\|^2 - \frac{\lambda_t}{2} \sum_i \|\sigma_i\|^2

One pass takes the E-step and moves all logits at once. The expected log-likelihood is concave in
them, and the second derivatives of a softmax are at most :math:`(I - 11^\top / K) / 2`. Since
:math:`(a + b)^2 \le 2 a^2 + 2 b^2`, the quadratic with curvature :math:`n (I - 11^\top / K)` for
both kinds of logits, ``n`` their expected number of labels on class ``k``, lies below the objective
and touches it, and its maximum has a closed form: every pass climbs, and no line search is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.engines.memory import Block
from wisecrowd.inference.class_prior import log_shares
from wisecrowd.kernels.posteriors import log_normalise

Floats = NDArray[np.float64]

STRETCH = 1 << 21  # logits that are worked on at once
SETTLING_STEPS = 40  # of the task logits once the workers' stand


class Stats(NamedTuple):
    """Additive statistics: worker gradients (J, K, K), labels per class (J, K), and the rest."""

    slope: Floats
    expected: Floats
    right: Floats  # (J,) expected correct labels
    mass: Floats  # (K,)
    log_likelihood: float
    penalty: float  # of the task logits


@dataclass(frozen=True, eq=False)
class Params:
    """Worker logits (J, K, K) and log class prior (K,)."""

    logits: Floats
    log_class: Floats


class State(NamedTuple):
    """Task logits of a block (n, K, K), or None where they are zero; a posterior to keep to."""

    logits: Floats | None
    held: Floats | None = None  # (n, K)


@dataclass(frozen=True, eq=False)
class LogitModel:
    r"""The inference contract of worker and task logits.

    Attributes
    ----------
    worker_penalty, task_penalty : float
        :math:`\lambda_w` and :math:`\lambda_t`; if infinite, the logits of tasks are zero.
    fixed_class : (n_classes,), optional
        Log class prior; None estimates it.
    moves_workers : bool
        Whether the worker logits move too, or only those of the tasks.
    """

    worker_penalty: float
    task_penalty: float
    fixed_class: Floats | None
    moves_workers: bool = True

    # -------------------------------------------------------------------------- inference contract

    def local_step(self, block: Block, state: State, params: Params) -> tuple[State, Stats]:
        """E-step, worker gradients, and new task logits of one block."""
        moved = None if state.logits is None else np.empty_like(state.logits)
        stats, _ = self._pass(block, state, params, moved)
        return State(moved, state.held), stats

    def global_step(self, stats: Stats, params: Params) -> Params:
        """Move the worker logits to the maximum of their bound, and count the classes."""
        slope = stats.slope - self.worker_penalty * params.logits
        bend = stats.expected * (1.0 if np.isfinite(self.task_penalty) else 0.5)
        moved = params.logits + _newton(slope, bend, self.worker_penalty)
        return Params(moved, self.class_update(stats.mass))

    def objective(self, stats: Stats, params: Params) -> float:
        """Penalised log-likelihood."""
        worker = 0.5 * self.worker_penalty * float((params.logits**2).sum())
        return stats.log_likelihood - stats.penalty - worker

    def extrapolate(self, first: Params, second: Params, third: Params) -> Params | None:
        """Not used: task logits are part of the state."""
        return None

    def class_update(self, mass: Floats) -> Floats:
        """Return the fixed log class prior, or the estimated one."""
        return log_shares(mass) if self.fixed_class is None else self.fixed_class

    # ------------------------------------------------------------------------------- given workers

    def first_state(self, block: Block, n_classes: int, held: Floats | None = None) -> State:
        """Return task logits of zero."""
        shape = (block.n_tasks, n_classes, n_classes)
        return State(np.zeros(shape) if np.isfinite(self.task_penalty) else None, held)

    def settle(self, block: Block, params: Params) -> tuple[State, Floats, Stats]:
        """Return the state, posterior (n, K) and statistics that worker logits alone lead to.

        The task logits start at zero and take a fixed number of steps, so that prediction repeats
        the fit, whatever path led to the worker logits.
        """
        alone = replace(self, moves_workers=False)
        state = self.first_state(block, len(params.log_class))
        if state.logits is not None:
            for _ in range(SETTLING_STEPS):
                state, _ = alone.local_step(block, state, params)
        stats, probas = alone._pass(block, state, params, None)
        return state, probas, stats

    # ---------------------------------------------------------------------------------- the pass

    def _pass(
        self, block: Block, state: State, params: Params, moved: Floats | None
    ) -> tuple[Stats, Floats]:
        K = len(params.log_class)
        n_workers = len(params.logits)
        probas = np.empty((block.n_tasks, K))
        slope, count = np.zeros((n_workers, K, K)), np.zeros((n_workers, K))
        right, value = np.zeros(n_workers), 0.0
        for tasks in _stretches(block, K):
            rows = slice(block.indptr[tasks.start], block.indptr[tasks.stop])
            per_task = np.diff(block.indptr[tasks.start : tasks.stop + 1])
            task = np.repeat(np.arange(len(per_task)), per_task)
            worker, label = block.worker[rows], block.label[rows]
            weight = np.ones(len(task)) if block.weight is None else block.weight[rows]
            given = params.logits[worker]
            if state.logits is not None:
                given = given + state.logits[tasks][task]
            expected, log_p = _softmax(given, label)
            prior = _prior(block, tasks) + params.log_class
            scores = _sum_by(task, weight[:, None] * log_p, len(per_task)) + prior
            q, log_z = log_normalise(scores)
            value += float(log_z[per_task > 0].sum())
            if state.held is not None:
                q = state.held[tasks]
            probas[tasks] = q
            share = weight[:, None] * q[task]
            surprise = -share[:, :, None] * expected
            surprise[np.arange(len(task)), :, label] += share
            right += np.bincount(worker, share[np.arange(len(task)), label], minlength=n_workers)
            if self.moves_workers:
                slope += _sum_by(worker, surprise, n_workers)
                count += _sum_by(worker, share, n_workers)
            if moved is not None and state.logits is not None:
                old = state.logits[tasks]
                gain = _sum_by(task, surprise, len(per_task)) - self.task_penalty * old
                total = np.bincount(task, weights=weight, minlength=len(per_task))
                bend = q * total[:, None] * (1.0 if self.moves_workers else 0.5)
                moved[tasks] = old + _newton(gain, bend, self.task_penalty)
        penalty = 0.0
        if state.logits is not None:
            penalty = 0.5 * self.task_penalty * float((state.logits**2).sum())
        mass = probas[np.diff(block.indptr) > 0].sum(axis=0)
        return Stats(slope, count, right, mass, value, penalty), probas


def _newton(slope: Floats, bend: Floats, penalty: float) -> Floats:
    r"""Solve :math:`(\lambda I + n (I - 11^\top / K)) x = g` for each row of slopes (.., K, K)."""
    mean = slope.mean(axis=-1, keepdims=True)
    down = penalty + bend[..., None]
    step = np.divide(slope - mean, down, out=np.zeros_like(slope), where=down > 0)
    return np.asarray(step + mean / penalty if penalty > 0 else step)


def _softmax(logits: Floats, label: NDArray[np.int32]) -> tuple[Floats, Floats]:
    """Return p(l | k) of each annotation (c, K, K) and the log of the given label's (c, K)."""
    shifted = logits - logits.max(axis=2, keepdims=True)
    shares = np.exp(shifted)
    total = shares.sum(axis=2, keepdims=True)
    shares /= total
    return shares, shifted[np.arange(len(label)), :, label] - np.log(total[:, :, 0])


def _sum_by(index: NDArray[Any], values: Floats, size: int) -> Floats:
    """Add up rows of ``values`` (c, ...) by index, in order: a product with a sparse matrix."""
    from scipy.sparse import csr_array

    flat = values.reshape(len(values), int(np.prod(values.shape[1:])))
    pick = csr_array(
        (np.ones(len(index)), (index, np.arange(len(index)))), shape=(size, len(index))
    )
    return np.asarray(pick @ flat).reshape(size, *values.shape[1:])


def _prior(block: Block, tasks: slice) -> Floats:
    if block.prior_index is None:
        return np.asarray(block.prior_rows[0])
    return np.asarray(block.prior_rows[block.prior_index[tasks]])


def _stretches(block: Block, n_classes: int) -> Iterator[slice]:
    """Cut a block's tasks so that each stretch has about ``STRETCH`` logits."""
    size = max(1, STRETCH // n_classes**2)
    begin, last = 0, block.n_tasks
    while begin < last:
        room = block.indptr[begin] + size
        end = int(np.searchsorted(block.indptr, room, side="right")) - 1
        end = min(max(end, begin + 1), begin + size, last)
        yield slice(begin, end)
        begin = end
