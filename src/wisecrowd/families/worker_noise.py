r"""Numbers with a bias and a noise per worker: the model that GaussianEM and StudentEM share.

.. math::
    y_e = z_i + b_{jq} + \varepsilon_e, \qquad \operatorname{Var} \varepsilon_e = \sigma_j^2
    \kappa_q, \qquad z_i \sim N(\mu_q, \tau_q^2), \qquad b_{jq} \sim N(0, \omega_q^2)

and :math:`\log\sigma_j^2` has the density :math:`\propto (\sigma^2)^{-a} e^{-a s^2 / \sigma^2}`:
:math:`2a` labels at the crowd's own noise :math:`s^2`. Variational EM with
:math:`q(z_i) = N(m_i, v_i)` and :math:`q(b_{jq}) = N(\beta_{jq}, c_{jq})`. One pass takes
:math:`m, v` of every task and sums residuals by worker (`kernels/worker_noise`); the driver updates
everything else in closed form. Every step maximises the bound, which never decreases.

Means are relative to a pivot, the mean label of the question, so that a large common offset costs
no digits. Workers are tables (J, Q) with one column per question; without questions Q = 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.engines.number_shards import NumberShard
from wisecrowd.families.number_facts import UNKNOWN_SHARE
from wisecrowd.families.number_scales import inside_range
from wisecrowd.kernels.arguments import NumberPriors

Floats = NDArray[np.float64]
START_BIAS = 0.1  # variance of the biases at the start, as a share of the noise
SMALLEST_RATIO = 0.1  # by which biases are scaled in one pass
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


class ShardPrior(NamedTuple):
    """Prior of a shard's tasks relative to the pivots: mean, precision and gold (n,), or None."""

    mean: Floats | None
    precision: Floats | None
    gold: Floats | None


@dataclass(frozen=True, eq=False, kw_only=True)
class NoiseModel:
    """Bias and noise per worker; subclasses define the E-step of their noise.

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
        shard.kernels("worker_noise").gaussian_step(
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
        if self.apart:
            numbers = shard.numbers
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

    def global_step(self, stats: NoiseStats, params: NoiseParams) -> NoiseParams:
        """Update biases, noise, and the hyperparameters, in this order."""
        moved, squares = self.worker_step(stats, params)
        params = self._noise_step(squares, moved)
        params = self._task_step(stats, params)
        return self.center(params) if self.has_bias else params

    def worker_step(self, stats: NoiseStats, params: NoiseParams) -> tuple[NoiseParams, Floats]:
        """Return the parameters with new biases, and the expected squared residuals (J, Q)."""
        first, second, spread, count = (stats.sums[:, :, k] for k in range(4))
        if not self.has_bias:
            return params, second + spread
        precision = params.precision
        variance = 1 / (1 / params.omega + count * precision)
        away = first + count * params.bias  # sums of residuals without biases
        bias = variance * precision * away
        # Scale biases and their prior together: the divergence stays, the likelihood grows. Plain
        # EM would need thousands of passes where the biases are almost zero.
        squared = (precision * count * (bias**2 + variance)).sum(axis=0)
        ratio = (precision * bias * away).sum(axis=0) / np.where(squared > 0, squared, 1.0)
        ratio = np.where(squared > 0, np.maximum(ratio, SMALLEST_RATIO), 1.0)
        bias, variance = ratio * bias, np.maximum(ratio**2 * variance, self.floor)
        move = bias - params.bias
        squares = second - 2 * move * first + move**2 * count + spread + variance * count
        return replace(params, bias=bias, bias_variance=variance), np.maximum(squares, 0.0)

    def _noise_step(self, squares: Floats, params: NoiseParams) -> NoiseParams:
        """Update the noise of workers, the factors of questions, and the typical noise."""
        a, count = self.strength, params.count
        n = count.sum(axis=1)
        own = (squares / params.factor).sum(axis=1) + 2 * a * params.typical
        with_prior = n + 2 * a
        known = (n > 0) & (with_prior > 0)
        noise = np.where(known, own / np.where(known, with_prior, 1.0), params.typical)
        noise = self.bounded(noise)
        factor, typical = params.factor, params.typical
        if len(factor) > 1:
            labels = count.sum(axis=0)
            ratio = (squares / noise[:, None]).sum(axis=0)
            factor = np.where(labels > 0, ratio / np.where(labels > 0, labels, 1.0), 1.0)
            factor = np.maximum(factor, self.floor / noise.max())
            mean = float(np.exp(np.mean(np.log(factor))))
            factor, noise = factor / mean, self.bounded(noise * mean)
        typical_of = known if self.least_noise is None else known & (self.least_noise <= self.floor)
        if typical_of.any():
            typical = float(typical_of.sum() / (1 / noise[typical_of]).sum())
        moved = np.abs(np.log(noise[known] / params.noise[known])).max(initial=0.0)
        noise = np.where(known, noise, typical)
        return replace(params, noise=noise, factor=factor, typical=typical, moved=float(moved))

    def bounded(self, noise: Floats) -> Floats:
        """Return the noise of workers, not below their limits."""
        return np.maximum(noise, self.floor if self.least_noise is None else self.least_noise)

    def _task_step(self, stats: NoiseStats, params: NoiseParams) -> NoiseParams:
        """Update mean and variance of the tasks and variance of the biases, by question."""
        totals = stats.totals
        n_tasks = np.maximum(totals[:, 0], 1.0)
        shift = totals[:, 2] / n_tasks
        squares = totals[:, 3] - n_tasks * shift**2 + totals[:, 4]
        pseudo = PSEUDO_TASKS * (self.spread > 0)
        variance = (squares + pseudo * self.spread) / (n_tasks + pseudo)
        has = totals[:, 0] > 0
        return replace(
            params,
            mean=params.mean + shift,
            variance=np.where(has, np.maximum(variance, self.floor), params.variance),
        )

    def center(self, params: NoiseParams) -> NoiseParams:
        """Move the mean bias of each question to the level of its tasks; update their variance.

        The likelihood of the labels stays, and the prior density of the biases grows.
        """
        used = params.count > 0
        n = np.maximum(used.sum(axis=0), 1)
        bias, mean = params.bias, params.mean
        if not self.fixed_level:
            shift = (bias * used).sum(axis=0) / n
            bias, mean = np.where(used, bias - shift, bias), mean + shift
        omega = ((bias**2 + params.bias_variance) * used).sum(axis=0) / n
        return replace(params, bias=bias, mean=mean, omega=np.maximum(omega, self.floor))

    def objective(self, stats: NoiseStats, params: NoiseParams) -> float:
        """Return the variational bound, with the log prior densities of biases and noise."""
        used, known = params.count > 0, params.count.sum(axis=1) > 0
        value = self.data_term(stats, params) + _task_term(stats)
        if self.has_bias:
            value -= self.bias_divergence(params, used)
        ratio = params.typical / params.noise[known]
        value += self.strength * float((np.log(ratio) - ratio).sum())
        if self.spread > 0:
            has = stats.totals[:, 0] > 0
            ratio = self.spread / params.variance[has]
            value += 0.5 * PSEUDO_TASKS * float((np.log(ratio) - ratio).sum())
        return float(value)

    def data_term(self, stats: NoiseStats, params: NoiseParams) -> float:
        """Return the expected log density of the labels."""
        squares = stats.sums[:, :, 1] + stats.sums[:, :, 2]
        squares = squares + params.bias_variance * stats.sums[:, :, 3]
        return log_density(params, squares)

    def bias_divergence(self, params: NoiseParams, used: NDArray[np.bool_]) -> float:
        """Return the divergence of the biases' posterior from their prior."""
        c = params.bias_variance
        terms = np.log(params.omega / c) + (params.bias**2 + c) / params.omega - 1
        return float(0.5 * terms[used].sum())

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


def _task_term(stats: NoiseStats) -> float:
    """Return minus the divergence of the tasks' posterior from their prior."""
    totals = stats.totals.sum(axis=0)
    return float(0.5 * (totals[5] - totals[6] - totals[7] + totals[1]))


def flat(stats: NoiseStats) -> tuple[Floats, Floats]:
    """Return views of the statistics with one row per cell."""
    return stats.sums.reshape(-1, stats.sums.shape[2]), stats.totals
