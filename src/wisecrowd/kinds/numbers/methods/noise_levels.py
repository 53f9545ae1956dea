r"""NoiseLevels: belief propagation over discrete noise levels of the workers.

.. math::
    y_e = z_i + \varepsilon_e, \quad \varepsilon_e \sim N(0, s), \; s = \sigma_j^2 \in \{s_1, \dots,
    s_S\}, \qquad z_i \sim N(\mu, \tau^2), \qquad p(\sigma_j^2 = s) = \pi_s

The variables are the levels of the workers, the factors are the tasks. Messages from worker to task
and back are

.. math::
    \log u_{j \to i}(s) = \log \pi_s + \sum_{i' \ne i} d_{i' \to j}(s), \qquad
    d_{i \to j}(s) = \log \int N(z; \mu, \tau^2)\, N(y_j; z, s) \prod_{v \ne j} \sum_t
    u_{v \to i}(t) N(y_v; z, t)\, dz.

The integral is over one number, so that the cost is linear in the labels of a task, not
exponential. The value of a task is the mean of :math:`z` under all incoming messages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.messages.descriptions import describe_value
from wisecrowd.core.parameter_checks import Choice, Limits, check_flag
from wisecrowd.core.registry import get_method
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import NUMBER, Saved, SavedArray, number_between
from wisecrowd.core.types import Floats
from wisecrowd.inference.monitor import Progress, current_listener
from wisecrowd.kernels import kernels_for
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.kernels import Edges, NormalPriors
from wisecrowd.kinds.numbers.methods.base import (
    NumberAggregator,
    NumberProblem,
    TaskEstimates,
    labels_by_task,
    task_means,
)
from wisecrowd.kinds.numbers.methods.facts import least_variance, overall_variance
from wisecrowd.kinds.numbers.methods.worker_noise import PSEUDO_TASKS

CENTERS = ("none", "gaussian-em")
LEVELS = (0.1, 0.3, 1.0, 3.0, 10.0)
SMALLEST_LEVEL, LARGEST_LEVEL, MOST_LEVELS = 1e-4, 1e4, 100
PSEUDO_WORKERS = 1.0  # per level, in the estimate of their shares
RARE = -300.0  # smallest log message
POINTS = 100  # typical number of points of an integral, for the choice of kernels
OSCILLATES = 0.95  # a change that is not below this share of the one before is no progress
DAMPING = 0.5


class WorkerTasks(NamedTuple):
    """Edges of the graph by task, and the worker (E,) and task (E,) of each."""

    edges: Edges
    worker: NDArray[np.int64]
    task: NDArray[np.int64]


@dataclass(eq=False, repr=False, kw_only=True)
class NoiseLevels(NumberAggregator):
    r"""Workers with one of a few noise levels, by belief propagation.

    .. math::
        y_{ij} = z_i + \varepsilon, \quad \varepsilon \sim N(0, \sigma_j^2), \quad
        \sigma_j^2 \in \{s_1, \dots, s_S\}, \qquad z_i \sim N(\mu, \tau^2)

    The levels of all workers are inferred with their uncertainty: a worker with few labels stays a
    mixture. Exact if the graph of tasks and workers is a tree.

    Use it when workers have few labels each and no bias, or to check an EM fit. Cost per iteration:
    O(annotations × levels × points of an integral, about 100).

    Parameters
    ----------
    levels : tuple of float
        Noise variances as multiples of the mean square of labels around their task's mean.
    learn : bool
        Estimate the shares :math:`\pi_s` of the levels; otherwise they are equal.
    exact : bool
        Integrate exactly. False projects each worker's mixture of levels to one normal, which is
        about a hundred times faster and less accurate.
    center : {"none", "gaussian-em"}
        "gaussian-em" first subtracts the biases of workers that GaussianEM estimates.
    max_iter, tol : int, float
        Maximum number of iterations; largest change of a message that counts as converged.
    scale : {"linear", "log"}
        With "log" the method works on the logarithms of the labels.

    Attributes
    ----------
    values_, variance_, low_, high_ : (n_tasks,)
        Mean and variance of :math:`z_i` under all messages, and 95% interval of the normal
        distribution with these moments.
    level_probas_ : (n_workers, n_levels)
        Belief of each worker's level.
    levels_, level_prior_ : (n_levels,)
        Noise variances :math:`s`, and their shares :math:`\pi`.
    noise_ : (n_workers,)
        Root of the expected variance.
    bias_ : (n_workers,)
        Subtracted biases; 0 with ``center="none"``.
    worker_weight_ : (n_workers,)
        Expected :math:`1 / s` over its sum.
    truth_mean_, truth_variance_ : float
        :math:`\mu` and :math:`\tau^2`, the moments of the tasks' means; in the second, two tasks
        count at the variance of all labels.

    Notes
    -----
    The paper sums over all combinations of levels of a task's workers. Here the same sum is an
    integral on a grid. Shares of levels are updated in every iteration, with one pseudo-worker per
    level. Repeated labels of a task by a worker share the worker's level.

    The value of a training task leaves out what its own labels say about the levels of its
    workers; ``predict`` is for new tasks. Messages are halved in their change when they oscillate.

    References
    ----------
    J. Ok, S. Oh, Y. Jang, J. Shin and Y. Yi (2019). Iterative Bayesian learning for crowdsourced
    regression. AISTATS, PMLR 89, 1486-1495.

    Examples
    --------
    >>> task = ["t1"] * 3 + ["t2"] * 3 + ["t3"] * 3
    >>> labels = [1.0, 1.1, 4.0, 2.0, 2.1, 0.0, 3.0, 3.2, 3.9]
    >>> model = NoiseLevels().fit((task, ["ann", "bob", "cem"] * 3, labels))
    >>> bool(model.noise_[2] > model.noise_[0])
    True
    """

    levels: Any = LEVELS
    learn: bool = True
    exact: bool = True
    center: str = "none"
    max_iter: int = 100
    tol: float = 1e-6

    takes_prior: ClassVar[bool] = True
    promises: ClassVar[Tags] = Tags(inductive=False, predicts=True, pooled=True)
    saves: ClassVar[dict[str, Saved]] = {
        "levels_": SavedArray("*", "positive"),
        "level_prior_": SavedArray("*", "distribution"),
        "level_probas_": SavedArray("J *", "distribution"),
        "truth_mean_": NUMBER,
        "truth_variance_": number_between(1e-300, np.inf),
    }

    limits: ClassVar[Limits] = {"center": Choice(CENTERS)}

    def _saved_fault(self) -> str:
        sizes = {len(self.levels_), len(self.level_prior_), self.level_probas_.shape[1]}
        return "" if len(sizes) == 1 else "levels_ and their probabilities have different lengths"

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        for name in ("learn", "exact"):
            check_flag(name, self.get_params()[name])
        _levels(self.levels)

    # ----------------------------------------------------------------------------------- fit

    def _fit_numbers(self, problem: NumberProblem) -> Fit:
        bias = self._biases(problem)
        data = _without(problem.data, bias)
        gold = problem.prior.gold
        means = task_means(data, data.weights)
        known = means if gold is None else np.where(np.isnan(gold), means, gold)
        levels = residual_variance(data, known) * _levels(self.levels)
        level = float(np.nanmean(known))
        variance = task_variance(known, data)
        graph = worker_tasks(data)
        priors = _normal_priors(replace(problem, data=data), level, variance)
        found = self._propagate(graph, priors, levels, data.n_workers)
        shares, belief, mean, spread, n_iter, converged = found
        weight = belief @ (1 / levels)
        used = np.bincount(graph.worker, minlength=data.n_workers) > 0
        return Fit(
            TaskEstimates(mean, spread),
            n_iter=n_iter,
            converged=converged,
            extra={
                "levels": levels, "level_prior": shares, "level_probas": belief, "bias": bias,
                "noise": np.sqrt(belief @ levels),
                "worker_weight": weight / max(float(weight[used].sum()), 1e-300),
                "truth_mean": level, "truth_variance": variance,
            },
        )  # fmt: skip

    def _shares(self, data: CrowdNumbers) -> Floats | None:
        return np.asarray(data.weights * self.worker_weight_[data.worker])

    def _biases(self, problem: NumberProblem) -> Floats:
        if self.center == "none":
            return np.zeros(problem.data.n_workers)
        bias: Floats = get_method(self.center)()._fit_numbers(problem).extra["bias"]
        return bias

    def _propagate(
        self, graph: WorkerTasks, priors: NormalPriors, levels: Floats, n_workers: int
    ) -> tuple[Floats, Floats, Floats, Floats, int, bool]:
        """Iterate; return shares, beliefs, mean and variance of tasks, passes and convergence."""
        S, n_tasks = len(levels), len(priors.mean)
        step = self._kernel(len(graph.worker), S)
        shares = np.full(S, 1 / S)
        answer = np.zeros((len(graph.worker), S))
        mean, variance = np.empty(n_tasks), np.empty(n_tasks)
        used = np.bincount(graph.worker, minlength=n_workers) > 0
        listener, converged = current_listener(), False
        before, damping = np.inf, 0.0
        message, belief = _messages(graph, answer, shares, n_workers)
        for n_iter in range(1, self.max_iter + 1):
            fresh = np.empty_like(answer)
            step(graph.edges, priors, levels, message, fresh, mean, variance)
            fresh -= np.logaddexp.reduce(fresh, axis=1, keepdims=True)
            answer = fresh if n_iter == 1 else fresh + damping * (answer - fresh)
            if self.learn:
                shares = belief_shares(_messages(graph, answer, shares, n_workers)[1][used])
            former, (message, belief) = message, _messages(graph, answer, shares, n_workers)
            change = float(np.abs(np.exp(message) - np.exp(former)).max(initial=0.0))
            if listener is not None:
                listener(Progress(n_iter, self.max_iter, change))
            if change < self.tol:
                converged = True
                break
            if n_iter > 3 and change > OSCILLATES * before:
                damping = DAMPING
            before = change
        step(graph.edges, priors, levels, message, np.empty_like(answer), mean, variance)
        return shares, belief, mean, variance, n_iter, converged

    def _kernel(self, n_edges: int, n_levels: int) -> Any:
        kernels: ModuleType = kernels_for(
            "noise_levels", n_edges * n_levels * (POINTS if self.exact else 1)
        )
        return kernels.level_step if self.exact else kernels.projected_step

    # ----------------------------------------------------------------------------- new tasks

    def _predict_numbers(self, problem: NumberProblem) -> TaskEstimates:
        data = problem.data
        bias, belief = np.zeros(data.n_workers), np.tile(self.level_prior_, (data.n_workers, 1))
        known = len(self.bias_)
        bias[:known], belief[:known] = self.bias_, self.level_probas_
        data = _without(data, bias)
        graph = worker_tasks(data)
        priors = _normal_priors(problem, self.truth_mean_, self.truth_variance_)
        message = np.maximum(np.log(np.maximum(belief, 1e-300)), RARE)[graph.worker]
        mean, variance = np.empty(data.n_tasks), np.empty(data.n_tasks)
        step = self._kernel(len(graph.worker), len(self.levels_))
        step(graph.edges, priors, self.levels_, message, np.empty_like(message), mean, variance)
        return TaskEstimates(mean, variance)


def _levels(given: Any) -> Floats:
    """Return the levels as an ascending array; refuse what is not one."""
    wrong = ParameterError(
        f"levels is {describe_value(given)}; give different numbers from {SMALLEST_LEVEL:g} to "
        f"{LARGEST_LEVEL:g}, such as 0.1, 1 and 10."
    )
    try:
        levels = np.sort(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        raise wrong from None
    if isinstance(given, bool) or levels.ndim != 1 or not 0 < len(levels) <= MOST_LEVELS:
        raise wrong
    if not (levels >= SMALLEST_LEVEL).all() or not (levels <= LARGEST_LEVEL).all():
        raise wrong
    if (np.diff(levels) <= 0).any():
        raise wrong
    return levels


def task_variance(known: Floats, data: CrowdNumbers) -> float:
    """Return the variance of the tasks' numbers, NaN where unknown.

    As in GaussianEM two tasks count at the variance of all labels, because a few tasks cannot show
    that all tasks are equal.
    """
    n = int(np.count_nonzero(~np.isnan(known)))
    squares = n * float(np.nanvar(known)) + PSEUDO_TASKS * overall_variance(data)
    return max(squares / (n + PSEUDO_TASKS), least_variance(data))


def residual_variance(data: CrowdNumbers, estimates: Floats) -> float:
    """Return the mean square of labels around their task's value, over tasks with two labels.

    Without such tasks it is half of the variance of all labels.
    """
    total = labels_by_task(data)
    compared = (total > 1)[data.task]
    count = float(total[total > 1].sum())
    squares = data.weights * (data.value - estimates[data.task]) ** 2
    found = float(squares[compared].sum()) / count if count else overall_variance(data) / 2
    return max(found, least_variance(data))


def _without(data: CrowdNumbers, bias: Floats) -> CrowdNumbers:
    return replace(data, value=data.value - bias[data.worker]) if bias.any() else data


def worker_tasks(data: CrowdNumbers) -> WorkerTasks:
    """Return one edge per task and worker; labels of weight 0 do not count."""
    kept = np.flatnonzero(data.weights > 0)
    weight, value = data.weights[kept], data.value[kept]
    pair = data.task[kept].astype(np.int64) * data.n_workers + data.worker[kept]
    is_first = np.append(True, pair[1:] != pair[:-1]) if len(pair) else np.empty(0, bool)
    place = np.cumsum(is_first) - 1
    total = np.bincount(place, weight).astype(np.float64)
    start = value[is_first]  # relative to the first, so that one label has no squares
    shift = np.bincount(place, weight * (value - start[place])) / total
    mean = start + shift
    squares = np.bincount(place, weight * (value - mean[place]) ** 2).astype(np.float64)
    task, worker = pair[is_first] // data.n_workers, pair[is_first] % data.n_workers
    indptr = np.searchsorted(task, np.arange(data.n_tasks + 1))
    return WorkerTasks(Edges(indptr, mean, total, squares), worker, task)


def _normal_priors(problem: NumberProblem, level: float, variance: float) -> NormalPriors:
    n_tasks, prior = problem.data.n_tasks, problem.prior
    mean, spread = np.full(n_tasks, level), np.full(n_tasks, variance)
    if prior.mean is not None and prior.variance is not None:
        mean, spread = prior.mean, prior.variance
    gold = np.full(n_tasks, np.nan) if prior.gold is None else prior.gold
    return NormalPriors(mean, 1 / spread, gold)


def _messages(
    graph: WorkerTasks, answer: Floats, shares: Floats, n_workers: int
) -> tuple[Floats, Floats]:
    """Return the log messages (E, S) of workers to tasks, and their beliefs (J, S)."""
    S = len(shares)
    total = np.stack([np.bincount(graph.worker, answer[:, k], n_workers) for k in range(S)], axis=1)
    total += np.log(shares)
    message = total[graph.worker] - answer
    message -= np.logaddexp.reduce(message, axis=1, keepdims=True)
    belief = np.exp(total - np.logaddexp.reduce(total, axis=1, keepdims=True))
    return np.maximum(message, RARE), belief / belief.sum(axis=1, keepdims=True)


def belief_shares(belief: Floats) -> Floats:
    """Return the shares (S,) of the levels among workers, with one pseudo-worker per level."""
    total = belief.sum(axis=0) + PSEUDO_WORKERS
    return np.asarray(total / total.sum())
