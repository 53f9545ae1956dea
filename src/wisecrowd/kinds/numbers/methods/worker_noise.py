r"""Numbers with a bias and a noise per worker: what the models of GaussianEM and StudentEM share.

.. math::
    y_e = z_i + b_{jq} + \varepsilon_e, \qquad \operatorname{Var} \varepsilon_e = \sigma_j^2
    \kappa_q, \qquad z_i \sim N(\mu_q, \tau_q^2), \qquad b_{jq} \sim N(0, \omega_q^2)

Parameters and statistics, priors and answers of shards, the level of all tasks, and what intervals
need. One pass takes mean and variance of every task and sums residuals by worker
(`kernels/worker_noise`); the updates from these sums and the objective are in
:mod:`wisecrowd.kinds.numbers.methods.gaussian_em`.

Means are relative to a pivot, the mean label of the question, so that a large common offset costs
no digits. Workers are tables (J, Q) with one column per question; without questions Q = 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.statistics import majority_level, stands_apart
from wisecrowd.core.types import Floats
from wisecrowd.kernels.arguments import NumberPriors
from wisecrowd.kinds.numbers.methods.facts import UNKNOWN_SHARE, inside_range
from wisecrowd.kinds.numbers.methods.intervals import NormalDesign
from wisecrowd.kinds.numbers.shards import NumberShard

START_BIAS = 0.1  # variance of the biases at the start, as a share of the noise
CLEARLY = 3.0  # standard errors of a bias that tells a worker apart
PSEUDO_TASKS = 2.0  # tasks at the variance of all labels


class NoiseStats(NamedTuple):
    """Additive statistics of one pass; see the kernels.

    Attributes
    ----------
    sums : (J, Q, 4 or 7)
        Sums of residuals by worker and question.
    totals : (Q, 8)
        Sums over tasks by question.
    logs : float
        Sum of the log terms of Student noise.
    """

    sums: Floats
    totals: Floats
    logs: float = 0.0


@dataclass(frozen=True, eq=False)
class NoiseParams:
    r"""Everything that the tasks of a shard need, and the hyperparameters.

    Attributes
    ----------
    bias, bias_variance : (J, Q)
        :math:`\beta_{jq}, c_{jq}`.
    noise : (J,)
        :math:`\sigma_j^2`.
    factor : (Q,)
        :math:`\kappa_q`, with product 1.
    mean, variance : (Q,)
        :math:`\mu_q` relative to the pivot, and :math:`\tau_q^2`.
    omega : (Q,)
        :math:`\omega_q^2`.
    typical : float
        :math:`s^2`.
    count : (J, Q)
        Weight of the labels.
    moved : float
        Largest change of a :math:`\log\sigma_j^2` in the step that made these parameters.
    gain, gain_variance, gain_covariance : (J, Q), optional
        Moments of the gains, and their covariance with the biases.
    """

    bias: Floats
    bias_variance: Floats
    noise: Floats
    factor: Floats
    mean: Floats
    variance: Floats
    omega: Floats
    typical: float
    count: Floats
    moved: float = np.inf
    gain: Floats | None = None
    gain_variance: Floats | None = None
    gain_covariance: Floats | None = None

    @property
    def precision(self) -> Floats:
        """(J, Q) precision of a label."""
        return 1 / (self.noise[:, None] * self.factor)


class Apart(NamedTuple):
    """Workers (n,) who stand apart from the majority, by how much, and among how many."""

    workers: NDArray[np.intp]
    distance: float
    n_workers: int


class ShardPrior(NamedTuple):
    """Prior of a shard's tasks relative to the pivots: mean, precision and gold (n,), or None."""

    mean: Floats | None
    precision: Floats | None
    gold: Floats | None


@dataclass(frozen=True, eq=False, kw_only=True)
class NoiseModel:
    """Bias and noise per worker; subclasses define the E-step of their noise and the updates.

    Attributes
    ----------
    n_workers : int
    pivot : (Q,)
        Means are relative to it.
    strength : float
        :math:`a`.
    has_bias : bool
    fixed_level : bool
        Whether gold or a prior fixes the level, so that biases are not centred.
    floor : float
        Smallest variance.
    spread : float
        Variance of all labels, at which ``PSEUDO_TASKS`` tasks count in the variance of the tasks;
        0 for none. A few tasks cannot show that all tasks are equal.
    least_noise : (J,), optional
        Smallest noise of each worker. A worker who repeats one number is not precise, although
        nothing contradicts that all tasks are equal.
    apart : bool
        Whether the workers of a pack use different scales, so that answers stay inside the labels.
    least : float
        Smallest variance of the labelled tasks of a pack, if no task has two labels.
    """

    n_workers: int
    pivot: Floats
    strength: float
    has_bias: bool
    fixed_level: bool
    floor: float
    spread: float = 0.0
    least_noise: Floats | None = None
    apart: bool = False
    least: float = 0.0
    n_columns: ClassVar[int] = 4

    # ----------------------------------------------------------------------------- one shard

    def begin(self, shard: NumberShard) -> Any:
        """Return the prior of the shard's tasks, relative to the pivots."""
        return self.shard_prior(shard)

    def shard_prior(self, shard: NumberShard) -> ShardPrior:
        """Return the prior of the shard's tasks, relative to the pivots."""
        question, prior = shard.numbers.question, shard.prior
        pivot = self.pivot[0] if question is None else self.pivot[question]
        return ShardPrior(
            None if prior.mean is None else prior.mean - pivot,
            None if prior.variance is None else 1 / prior.variance,
            None if prior.gold is None else prior.gold - pivot,
        )

    def priors(self, own: ShardPrior, params: NoiseParams) -> NumberPriors:
        """Return the priors of tasks in the form that kernels take."""
        if own.mean is not None and own.precision is not None:
            return NumberPriors(own.mean, own.precision, True, params.mean, own.gold)
        return NumberPriors(params.mean, 1 / params.variance, False, params.mean, own.gold)

    def start(self, shard: NumberShard, state: Any, params: Any) -> tuple[Any, NoiseStats]:
        """Return the statistics of task means: no prior, no bias, equal noise."""
        Q = len(self.pivot)
        cells = np.stack(np.broadcast_arrays(np.tile(self.pivot, self.n_workers), 1.0), axis=1)
        none = np.zeros(Q)
        priors = NumberPriors(none, none, False, none, self.shard_prior(shard).gold)
        stats = self.empty_stats(4)
        shard.kernels.gaussian_step(
            shard.numbers, np.ascontiguousarray(cells), priors, *flat(stats), None, None
        )
        return state, stats

    def empty_stats(self, n_columns: int) -> NoiseStats:
        """Return statistics that are zero."""
        Q = len(self.pivot)
        return NoiseStats(np.zeros((self.n_workers, Q, n_columns)), np.zeros((Q, 8)))

    def cells(self, params: NoiseParams, *more: Floats) -> Floats:
        """Return offset, precision and further columns of each worker and question (JQ, n)."""
        columns = (self.pivot + params.bias, params.precision, *more)
        return np.ascontiguousarray(np.stack([c.ravel() for c in columns], axis=1))

    def answer(
        self, shard: NumberShard, state: Any, params: NoiseParams
    ) -> tuple[tuple[Floats, Floats], NoiseStats]:
        """Return mean, relative to the pivots, and variance (n,) of the tasks of a shard."""
        raise TypeError(f"{type(self).__name__} must define answer.")

    def placed_answer(
        self, shard: NumberShard, state: Any, params: NoiseParams
    ) -> tuple[tuple[Floats, Floats], NoiseStats]:
        """Return mean and variance (n,) in the units of the labels, for a shard of a pack."""
        (mean, variance), stats = self.answer(shard, state, params)
        mean, gold = mean + self.pivot[0], shard.prior.gold
        variance = variance + self.level_variance(params)[0]
        numbers = shard.numbers
        variance = np.maximum(variance, np.where(np.diff(numbers.indptr) > 0, self.least, 0.0))
        if self.apart:
            task = np.repeat(np.arange(shard.n_tasks), np.diff(numbers.indptr))
            used = slice(None) if numbers.weight is None else numbers.weight > 0
            mean, variance = inside_range(mean, variance, task[used], numbers.value[used])
        if gold is not None:
            known = ~np.isnan(gold)
            mean, variance = np.where(known, gold, mean), np.where(known, 0.0, variance)
        return (mean, variance), stats

    # -------------------------------------------------------------------------- all shards

    def level_variance(self, params: NoiseParams) -> Floats:
        """Return the variance (Q,) of the level of all tasks, which is that of a mean of workers.

        The mean bias is set to zero; that of another J workers would be as far from it as the
        biases spread. Known numbers or a prior fix the level.
        """
        if not self.has_bias or self.fixed_level:
            return np.zeros(len(self.pivot))
        used = (params.count > 0).sum(axis=0)
        return np.asarray(params.omega / np.maximum(used - 1, 1))

    def inflated_omega(self, params: NoiseParams) -> Floats:
        """Return the variance (Q,) of the biases around their own mean, which was removed."""
        if not self.has_bias:
            return np.zeros(len(self.pivot))
        used = (params.count > 0).sum(axis=0)
        lost = np.where(used > 1, used / np.maximum(used - 1, 1), 1.0)
        return np.asarray(params.omega * (1.0 if self.fixed_level else lost))

    def with_majority_level(self, params: NoiseParams) -> tuple[NoiseParams, list[Apart]]:
        """Return parameters whose median bias is 0 where a minority stands apart.

        This is so where the biases are far closer to their median than their standard deviation
        says. The second result tells of those who stand apart clearly.
        """
        if not self.has_bias or self.fixed_level or params.gain is not None:
            return params, []
        bias, mean, found = params.bias.copy(), params.mean.copy(), []
        for q in range(len(mean)):
            used = np.flatnonzero(params.count[:, q] > 0)
            own = bias[used, q]
            level = majority_level(own)
            if level is None:
                continue
            away = own - level
            bias[used, q], mean[q] = away, mean[q] + level
            error = np.sqrt(params.bias_variance[used, q])
            apart = stands_apart(own, level) & (np.abs(away) > CLEARLY * error)
            if apart.any():
                distance = float(np.median(away[apart]))
                found.append(Apart(used[apart], distance, len(used)))
        return replace(params, bias=bias, mean=mean), found

    def design(self, problem: Any, params: NoiseParams, estimates: Any, q: int) -> NormalDesign:
        """Return the labels of a question as a normal model whose noise is known.

        ``estimates`` are means and variances (n_tasks,) of the numbers with biases fixed.
        """
        data, prior = problem.data, problem.prior
        code = data.questions[1]
        rows = np.flatnonzero(data.weights > 0)
        if code is not None:
            rows = rows[code[data.task[rows]] == q]
        place, worker = data.task[rows], data.worker[rows]
        precision = data.weights[rows] * params.precision[worker, q]
        precision = precision * self.information(data, rows, params, estimates, q)
        own = cross = precision
        if params.gain is not None and params.gain_variance is not None:
            gain = params.gain[worker, q]
            own = precision * (gain**2 + params.gain_variance[worker, q])
            cross = precision * gain
        of_task = np.full(data.n_tasks, 1 / params.variance[q])
        known = np.zeros(data.n_tasks, bool)
        if prior.given:
            of_task = 1 / prior.variance
        if prior.gold is not None:
            known = ~np.isnan(prior.gold)
        if code is not None:
            tasks = code == q
            of_task, known, place = of_task[tasks], known[tasks], (np.cumsum(tasks) - 1)[place]
        return NormalDesign(
            task=place, worker=worker, own=own, cross=cross, bias=precision, prior=of_task,
            known=known, omega=float(self.inflated_omega(params)[q]), n_workers=self.n_workers,
            has_level=not prior.given,
        )  # fmt: skip

    def information(
        self, data: Any, rows: Any, params: NoiseParams, estimates: Any, q: int
    ) -> Floats | float:
        """Return the information of labels about their number, relative to their precision."""
        return 1.0

    def freedom(self, design: NormalDesign, params: NoiseParams, q: int) -> tuple[float, float]:
        """Return the degrees of freedom of noise and of the spread of the biases."""
        count = params.count[:, q]
        tasks = np.zeros(len(design.known), bool)
        tasks[design.task] = True
        n_workers = int((count > 0).sum())
        rest = float(count.sum()) - int((tasks & ~design.known).sum())
        of_bias = n_workers if self.fixed_level else n_workers - 1
        return max(rest - n_workers * self.has_bias, 1.0), max(float(of_bias), 1.0)

    def first_params(self, stats: NoiseStats, total_variance: float) -> NoiseParams:
        """Return the parameters of the task means: equal noise, small biases."""
        count, squares, used = (stats.sums[:, :, k] for k in (3, 1, 2))
        freedom = float(count.sum() - used.sum())
        noise = float(squares.sum()) / freedom if freedom > 0 else UNKNOWN_SHARE * total_variance
        noise = max(noise, self.floor)
        n_tasks = np.maximum(stats.totals[:, 0], 1.0)
        mean = stats.totals[:, 2] / n_tasks
        spread = stats.totals[:, 3] / n_tasks - mean**2
        variance = np.where(spread > self.floor, spread, max(total_variance, self.floor))
        if freedom <= 0:
            variance = np.full(len(mean), max((1 - UNKNOWN_SHARE) * total_variance, self.floor))
        J, Q = count.shape
        omega = max(START_BIAS * noise, self.floor)
        return NoiseParams(
            bias=np.zeros((J, Q)),
            bias_variance=np.full((J, Q), omega * self.has_bias),
            noise=self.bounded(np.full(J, noise)),
            factor=np.ones(Q),
            mean=mean,
            variance=variance,
            omega=np.full(Q, omega),
            typical=noise,
            count=count,
        )

    def bounded(self, noise: Floats) -> Floats:
        """Return the noise of workers, not below their limits."""
        return np.maximum(noise, self.floor if self.least_noise is None else self.least_noise)

    def extrapolate(self, first: Any, second: Any, third: Any) -> None:
        """Do not extrapolate: centring the biases makes plain passes fast."""
        return

    def log_likelihood(self, stats: NoiseStats, params: NoiseParams) -> float:
        """Return the log density of the labels with the numbers of the tasks integrated out."""
        data = log_density(params, stats.sums[:, :, 1])
        return data + float(0.5 * (stats.totals[:, 5] - stats.totals[:, 6]).sum())


def log_density(params: NoiseParams, squares: Floats) -> float:
    """Return the log density of normal labels with these sums of squared residuals (J, Q)."""
    precision = params.precision
    normal = params.count * np.log(2 * np.pi / precision) + squares * precision
    return float(-0.5 * normal.sum())


def flat(stats: NoiseStats) -> tuple[Floats, Floats]:
    """Return views of the statistics with one row per cell."""
    return stats.sums.reshape(-1, stats.sums.shape[2]), stats.totals
