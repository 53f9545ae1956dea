r"""Minimax conditional entropy: worker and task logits, free or restricted to a basis.

.. math::
    p(y_{ij} = l \mid z_i = k) \propto \exp(\sigma_i[k, l] + \tau_j[k, l]), \qquad
    F = \sum_i \log \sum_k \pi_k \prod_j p(y_{ij} \mid k)
    - \frac{\lambda_w}{2} \sum_j \|\tau_j\|^2 - \frac{\lambda_t}{2} \sum_i \|\sigma_i\|^2

One pass takes the E-step and moves all logits at once. The expected log-likelihood is concave in
them, and the second derivatives of a softmax are at most :math:`(I - 11^\top / K) / 2`. Because
:math:`(a + b)^2 \le 2 a^2 + 2 b^2`, a quadratic with curvature :math:`n (I - 11^\top / K)` for
both kinds of logits lies below the objective and touches it; ``n`` is their expected number of
labels on class ``k``. Its maximum has a closed form, so the objective never decreases and no line
search is needed.

Logits may be sums over a basis, :math:`\tau_j = \sum_p a_{jp} B_p`, with the penalty on the
coefficients :math:`a`; without one, the coefficients are the logits. The bound in the coefficients
has the curvature :math:`\sum_k n_k B_k^\top (I - 11^\top / K) B_k`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.parameter_checks import Limits, Number, check_number, is_auto
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray, SavedValue
from wisecrowd.core.types import Floats
from wisecrowd.inference.loop import first_params, iterate
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.class_prior import (
    fixed_class_prior,
    known_class_prior,
    log_shares,
)
from wisecrowd.kinds.classes.families.posteriors import (
    Start,
    share_of,
    single_task_workers,
    worker_weights,
)
from wisecrowd.kinds.classes.kernels.posteriors import log_normalise
from wisecrowd.kinds.classes.shards import Shard

HELD_PASSES = 20  # passes that keep the starting posterior fixed
STRETCH = 1 << 21  # logits that are processed at once
SETTLING_STEPS = 40  # steps of the task logits once the worker logits are final


class MinimaxStats(NamedTuple):
    """Additive statistics: worker gradients (J, K, K), labels per class (J, K), and others."""

    slope: Floats
    expected: Floats
    right: Floats  # (J,) expected correct labels
    mass: Floats  # (K,)
    log_likelihood: float
    penalty: float  # penalty of the task logits


@dataclass(frozen=True, eq=False)
class MinimaxParams:
    """Coefficients of the worker logits, (J, K, K) or (J, P), and log class prior (K,)."""

    coefs: Floats
    log_class: Floats


class StartMass(NamedTuple):
    """Additive statistics of a start: expected tasks of each class, (K,)."""

    mass: Floats


class MinimaxState(NamedTuple):
    """Coefficients of a shard's task logits, or None where they are zero; a fixed posterior."""

    coefs: Floats | None
    held: Floats | None = None  # (n, K)


@dataclass(frozen=True, eq=False)
class MinimaxModel:
    r"""Worker and task logits, updated by maximising a lower bound.

    Attributes
    ----------
    worker_penalty, task_penalty : float
        :math:`\lambda_w` and :math:`\lambda_t`; if :math:`\lambda_t` is infinite, task logits are
        zero.
    n_workers, n_classes : int
    fixed_class : (n_classes,), optional
        Log class prior; None estimates it.
    moves_workers : bool
        Whether the worker logits move too, or only the task logits.
    basis : (P, n_classes, n_classes), optional
        Logits of each coefficient; None if coefficients are logits.
    centre : (P,), optional
        Coefficients of a worker without labels, to which the penalty shrinks; None means 0.
    """

    worker_penalty: float
    task_penalty: float
    n_workers: int
    n_classes: int
    fixed_class: Floats | None
    moves_workers: bool = True
    basis: Floats | None = None
    centre: Floats | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the coefficients of one worker or task."""
        return (self.n_classes, self.n_classes) if self.basis is None else (len(self.basis),)

    def logits(self, coefs: Floats) -> Floats:
        """Return the logits (n, K, K) of coefficients."""
        return coefs if self.basis is None else np.einsum("np,pkl->nkl", coefs, self.basis)

    def step(self, coefs: Floats, slope: Floats, bend: Floats, penalty: float) -> Floats:
        """Return the step to the maximum of the bound.

        Parameters
        ----------
        coefs : (n, ...) coefficients, minus their centre
        slope : (n, K, K) gradient of the log-likelihood by the logits
        bend : (n, K) curvature of the bound
        penalty : float
        """
        if self.basis is None:
            return _newton(slope - penalty * coefs, bend, penalty)
        centred = self.basis - self.basis.mean(axis=2, keepdims=True)
        gain = np.einsum("nkl,pkl->np", slope, self.basis) - penalty * coefs
        curvature = np.einsum("nk,pkl,qkl->npq", bend, centred, centred, optimize=True)
        ridge = penalty + 1e-9 * (1 + bend.sum(axis=1))  # positive without a penalty, too
        curvature += ridge[:, None, None] * np.eye(len(self.basis))
        return np.asarray(np.linalg.solve(curvature, gain[:, :, None])[:, :, 0])

    def begin(self, shard: Shard) -> MinimaxState:
        """Return task logits of zero."""
        shape = (shard.n_tasks, *self.shape)
        return MinimaxState(np.zeros(shape) if np.isfinite(self.task_penalty) else None)

    def first(
        self, shard: Shard, state: MinimaxState, start: Start
    ) -> tuple[MinimaxState, StartMass]:
        """Fix the posterior of a shard at the start."""
        held = start.posterior(shard, self.n_classes)
        return state._replace(held=held), StartMass(held[shard.labelled].sum(axis=0))

    def local_step(
        self, shard: Shard, state: MinimaxState, params: MinimaxParams
    ) -> tuple[MinimaxState, MinimaxStats]:
        """Compute the E-step, worker gradients and new task logits of one shard."""
        moved = None if state.coefs is None else np.empty_like(state.coefs)
        stats, _ = self._pass(shard, state, params, moved)
        return MinimaxState(moved, state.held), stats

    def global_step(
        self, stats: MinimaxStats | StartMass, params: MinimaxParams | None
    ) -> MinimaxParams:
        """Move the worker logits to the maximum of their bound, and update the class prior."""
        if isinstance(stats, StartMass):
            coefs = np.zeros((self.n_workers, *self.shape))
            if self.centre is not None:
                coefs += self.centre
            return MinimaxParams(coefs, self.class_update(stats.mass))
        assert params is not None
        bend = stats.expected * (1.0 if np.isfinite(self.task_penalty) else 0.5)
        off = params.coefs if self.centre is None else params.coefs - self.centre
        step = self.step(off, stats.slope, bend, self.worker_penalty)
        return MinimaxParams(params.coefs + step, self.class_update(stats.mass))

    def objective(self, stats: MinimaxStats, params: MinimaxParams) -> float:
        """Return the penalised log-likelihood."""
        off = params.coefs if self.centre is None else params.coefs - self.centre
        worker = 0.5 * self.worker_penalty * float((off**2).sum())
        return stats.log_likelihood - stats.penalty - worker

    def extrapolate(
        self, first: MinimaxParams, second: MinimaxParams, third: MinimaxParams
    ) -> MinimaxParams | None:
        """Return None: there is no acceleration, because task logits are part of the state."""
        return None

    def class_update(self, mass: Floats) -> Floats:
        """Return the fixed log class prior, or the estimated one."""
        return log_shares(mass) if self.fixed_class is None else self.fixed_class

    def answer(
        self, shard: Shard, state: Any, params: MinimaxParams
    ) -> tuple[tuple[Floats, Floats | None], MinimaxStats]:
        """Return the posterior (n, K) and the task coefficients that follow from the worker logits.

        The task logits start at zero and take a fixed number of steps. They do not depend on the
        path of the fit, so that prediction repeats the fit.
        """
        alone, state = replace(self, moves_workers=False), self.begin(shard)
        if state.coefs is not None:
            for _ in range(SETTLING_STEPS):
                state, _ = alone.local_step(shard, state, params)
        stats, probas = alone._pass(shard, state, params, None)
        return (probas, state.coefs), stats

    def _pass(
        self, shard: Shard, state: MinimaxState, params: MinimaxParams, moved: Floats | None
    ) -> tuple[MinimaxStats, Floats]:
        K = len(params.log_class)
        n_workers, worker_logits = len(params.coefs), self.logits(params.coefs)
        probas = np.empty((shard.n_tasks, K))
        slope, count = np.zeros((n_workers, K, K)), np.zeros((n_workers, K))
        right, value = np.zeros(n_workers), 0.0
        for tasks in _stretches(shard, K):
            rows = slice(shard.indptr[tasks.start], shard.indptr[tasks.stop])
            per_task = np.diff(shard.indptr[tasks.start : tasks.stop + 1])
            task = np.repeat(np.arange(len(per_task)), per_task)
            worker, label = shard.worker[rows], shard.label[rows]
            weight = np.ones(len(task)) if shard.weight is None else shard.weight[rows]
            given = worker_logits[worker]
            if state.coefs is not None:
                given = given + self.logits(state.coefs[tasks])[task]
            expected, log_p = _softmax(given, label)
            of_task = 0 if shard.prior_index is None else shard.prior_index[tasks]
            prior = shard.prior_rows[of_task] + params.log_class
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
            if moved is not None and state.coefs is not None:
                old = state.coefs[tasks]
                gain = _sum_by(task, surprise, len(per_task))
                total = np.bincount(task, weights=weight, minlength=len(per_task))
                bend = q * total[:, None] * (1.0 if self.moves_workers else 0.5)
                moved[tasks] = old + self.step(old, gain, bend, self.task_penalty)
        penalty = 0.0
        if state.coefs is not None:
            penalty = 0.5 * self.task_penalty * float((state.coefs**2).sum())
        mass = probas[shard.labelled].sum(axis=0)
        return MinimaxStats(slope, count, right, mass, value, penalty), probas


@dataclass(eq=False, repr=False, kw_only=True)
class MinimaxMethod(Aggregator):
    """Base of the methods by minimax conditional entropy; subclasses name the basis of logits."""

    worker_penalty: Any = "auto"
    task_penalty: Any = "auto"
    class_prior: Any = "uniform"
    max_iter: int = 200
    tol: float = 1e-6

    saves: ClassVar[dict[str, Saved]] = {
        "class_prior_": SavedArray("K", "distribution"),
        "confusion_": SavedArray("J K K", "distribution"),
        "task_penalty_used_": SavedValue(
            lambda value: isinstance(value, float) and value > 0, "a positive number"
        ),
    }
    promises: ClassVar[Tags] = Tags(monotone=True, inductive=True, confusion=True)

    limits: ClassVar[Limits] = {"worker_penalty": Number(0.0, auto=True)}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        infinite = isinstance(self.task_penalty, float) and self.task_penalty == np.inf
        if not (is_auto(self.task_penalty) or infinite):
            check_number("task_penalty", self.task_penalty, 0.0)
            if not self.task_penalty > 0:
                raise ParameterError(
                    "task_penalty is 0, and then every task explains its own labels; give a "
                    "positive number, infinity or 'auto'."
                )

    def _penalties(self, labels: CrowdLabels) -> tuple[float, float]:
        worker = 1.0 if is_auto(self.worker_penalty) else float(self.worker_penalty)
        if not is_auto(self.task_penalty):
            return worker, float(self.task_penalty)
        weight = labels.weights
        n_tasks = float((np.bincount(labels.task, weight, minlength=labels.n_tasks) > 0).sum())
        n_workers = float((worker_weights(labels) > 0).sum())
        # Labels per worker over labels per task; where workers have no penalty, tasks need one.
        ratio = max(n_tasks, 1.0) / max(n_workers, 1.0)
        return worker, (worker or 1.0) * ratio

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> Fit:
        labels, prior = problem.data, problem.prior
        J, K = labels.n_workers, labels.n_classes
        require_memory(
            8 * 4 * (J + labels.n_tasks) * K * K,
            f"{type(self).__name__} with {labels.n_tasks} tasks and {K} classes would",
            "use one-coin or majority-vote, which need a few bytes per annotation",
        )
        single = np.flatnonzero(single_task_workers(labels))
        code = np.arange(J, dtype=np.int32)
        code[single] = single[:1]
        pooled = replace(labels, worker=code[labels.worker])
        penalties = self._penalties(pooled)
        fixed = fixed_class_prior(self.class_prior, prior, K, labels)
        if not (fixed is None or prior.given or not isinstance(self.class_prior, str)):
            fixed = np.where(labels.class_totals > 0, fixed, np.log(1e-300))
        model = MinimaxModel(*penalties, J, K, fixed, basis=self._basis(K), centre=self._centre(K))
        shards = replace(problem, data=pooled).cut(2 * J * K * K)
        params, states = first_params(model, shards, Start(problem.start))
        for _ in range(HELD_PASSES):  # logits that fit the starting posterior
            states, stats = shards.map_reduce(model, "local_step", states, params)
            params = model.global_step(stats, params)
        states = [state._replace(held=None) for state in states]
        done = iterate(model, shards, params, states, max_iter=self.max_iter, tol=self.tol)
        fitted = MinimaxParams(done.params.coefs[code], done.params.log_class)
        probas, coefs, right = _settled(model, problem, fitted)
        class_prior = np.exp(fitted.log_class - fitted.log_class.max())
        total = worker_weights(labels)
        accuracy = share_of(right, total, 1 / K)
        logits = model.logits(fitted.coefs)
        extra = {"task_penalty_used": penalties[1], **self._extra(logits, fitted.coefs, coefs)}
        return Fit(
            self._answers(probas),
            accuracy,
            class_prior=class_prior / class_prior.sum(),
            confusion=_rows(logits),
            n_iter=done.n_iter,
            converged=done.converged,
            history=done.history,
            extra=extra,
        )

    # --------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Any:
        labels, prior = problem.data, problem.prior
        log_class = known_class_prior(self.class_prior, prior, self.class_prior_)
        # Logits of zero make a label uninformative, but the label would still move the task logits.
        known = labels.worker < len(self.workers_)
        if not known.all():
            problem = replace(problem, data=labels.select_annotations(known))
        J, K = len(self.workers_), len(self.classes_)
        penalty = self.task_penalty_used_
        model = MinimaxModel(0.0, penalty, J, K, log_class, basis=self._basis(K))
        params = MinimaxParams(self._worker_coefs(), log_class)
        return self._answers(_settled(model, problem, params)[0])

    # -------------------------------------------------------------------- what subclasses define

    def _basis(self, n_classes: int) -> Floats | None:
        """Return the basis of the logits (P, K, K), or None if they are free."""
        return None

    def _centre(self, n_classes: int) -> Floats | None:
        """Return the coefficients to which workers are shrunk, or None for 0."""
        return None

    def _answers(self, probas: Floats) -> Any:
        """Return a posterior in the form of the method's kind."""
        return probas

    def _extra(self, logits: Floats, workers: Floats, tasks: Floats | None) -> dict[str, Any]:
        """Return the results to publish: from worker logits, and coefficients of both."""
        raise TypeError(f"{type(self).__name__} must define _extra.")

    def _worker_coefs(self) -> Floats:
        """Return the fitted coefficients of the worker logits."""
        raise TypeError(f"{type(self).__name__} must define _worker_coefs.")


def _settled(
    model: MinimaxModel, problem: Problem, params: MinimaxParams
) -> tuple[Floats, Floats | None, Floats]:
    """Return posterior (n_tasks, K), task coefficients and expected correct labels (J,)."""
    n_tasks = problem.data.n_tasks
    probas = np.empty((n_tasks, model.n_classes))
    coefs = np.empty((n_tasks, *model.shape)) if np.isfinite(model.task_penalty) else None

    def store(tasks: slice, rows: tuple[Floats, Floats | None]) -> None:
        probas[tasks] = rows[0]
        if coefs is not None:
            coefs[tasks] = rows[1]

    shards = problem.cut(2 * len(params.coefs) * model.n_classes**2)
    stats = shards.collect(model, "answer", shards.begin(model), params, store)
    return probas, coefs, stats.right


def _rows(logits: Floats) -> Floats:
    shares = np.exp(logits - logits.max(axis=2, keepdims=True))
    return np.asarray(shares / shares.sum(axis=2, keepdims=True))


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
    """Sum rows of ``values`` (c, ...) by index, in order, as a product with a sparse matrix."""
    from scipy.sparse import csr_array

    flat = values.reshape(len(values), int(np.prod(values.shape[1:])))
    pick = csr_array(
        (np.ones(len(index)), (index, np.arange(len(index)))), shape=(size, len(index))
    )
    return np.asarray(pick @ flat).reshape(size, *values.shape[1:])


def _stretches(shard: Shard, n_classes: int) -> Iterator[slice]:
    """Cut a shard's tasks so that each stretch has about ``STRETCH`` logits."""
    size = max(1, STRETCH // n_classes**2)
    begin, last = 0, shard.n_tasks
    while begin < last:
        room = shard.indptr[begin] + size
        end = int(np.searchsorted(shard.indptr, room, side="right")) - 1
        end = min(max(end, begin + 1), begin + size, last)
        yield slice(begin, end)
        begin = end
