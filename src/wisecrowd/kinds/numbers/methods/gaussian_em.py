r"""GaussianEM: a bias, a noise and, as an option, a gain per worker.

.. math::
    y_e = z_i + b_j + \varepsilon_e, \quad \varepsilon_e \sim N(0, \sigma_j^2), \qquad
    z_i \sim N(\mu, \tau^2), \quad b_j \sim N(0, \omega^2)

The E-step of a task is the posterior of a normal mean:

.. math::
    1 / v_i = 1 / \tau^2 + \sum_e w_e / \sigma_j^2, \qquad
    m_i = v_i \Bigl(\mu / \tau^2 + \sum_e w_e (y_e - \beta_j) / \sigma_j^2\Bigr)

With :math:`q(b_j) = N(\beta_j, c_j)`, and the noise's density
:math:`\propto (\sigma^2)^{-a} e^{-a s^2 / \sigma^2}` in :math:`\log\sigma_j^2`, that is
:math:`2a` labels at the crowd's own noise :math:`s^2`, everything else is updated in closed form
from sums of residuals by worker. Every step maximises the variational bound, which never decreases.

With gains, :math:`y_e = \pi + b_j + g_j (z_i - \pi) + \varepsilon_e` around the mean label
:math:`\pi`, with :math:`g_j \sim N(1, \gamma^2)`. The pair :math:`(g_j, b_j)` has a normal
posterior whose precision is

.. math::
    \begin{pmatrix} \gamma^{-2} & 0 \\ 0 & \omega^{-2} \end{pmatrix} + \frac{1}{\sigma_j^2}
    \sum_e w_e \begin{pmatrix} m_i^2 + v_i & m_i \\ m_i & 1 \end{pmatrix}.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.parameter_checks import Flag, Limits
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.loop import LoopResult
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods.base import NumberProblem
from wisecrowd.kinds.numbers.methods.noise_em import NoiseEM
from wisecrowd.kinds.numbers.methods.worker_noise import (
    PSEUDO_TASKS,
    NoiseModel,
    NoiseParams,
    NoiseStats,
    ShardPrior,
    flat,
    log_density,
)
from wisecrowd.kinds.numbers.shards import NumberShard

SMALLEST_RATIO = 0.1  # by which biases are scaled in one pass
GAIN_VARIANCE = 0.2**2  # of the prior of the gains


@dataclass(frozen=True, eq=False, kw_only=True)
class NoiseUpdates(NoiseModel):
    """The M-step and the objective, from sums over all shards; Student noise has the same."""

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
        totals = stats.totals.sum(axis=0)
        # Minus the divergence of the tasks' posterior from their prior.
        of_tasks = float(0.5 * (totals[5] - totals[6] - totals[7] + totals[1]))
        value = self.data_term(stats, params) + of_tasks
        if self.has_bias:
            c = params.bias_variance  # minus the divergence of the biases from their prior
            terms = np.log(params.omega / c) + (params.bias**2 + c) / params.omega - 1
            value -= float(0.5 * terms[used].sum())
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


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianModel(NoiseUpdates):
    """Normal noise: the posterior of each task in closed form."""

    def local_step(
        self, shard: NumberShard, state: ShardPrior, params: NoiseParams
    ) -> tuple[ShardPrior, NoiseStats]:
        """Sum the residuals of one shard at the posterior means of its tasks."""
        return state, self._step(shard, state, params, None, None)

    def answer(
        self, shard: NumberShard, state: ShardPrior, params: NoiseParams
    ) -> tuple[tuple[Floats, Floats], NoiseStats]:
        """Return mean and variance (n,) of the tasks of a shard."""
        mean, variance = np.empty(shard.n_tasks), np.empty(shard.n_tasks)
        stats = self._step(shard, state, params, mean, variance)
        return (mean, variance), stats

    def _step(
        self, shard: NumberShard, own: ShardPrior, params: NoiseParams, mean: Any, variance: Any
    ) -> NoiseStats:
        stats = self.empty_stats(self.n_columns)
        step = shard.kernels.gaussian_step
        priors = self.priors(own, params)
        step(shard.numbers, self.cells(params), priors, *flat(stats), mean, variance)
        return stats


@dataclass(frozen=True, eq=False, kw_only=True)
class GainModel(GaussianModel):
    """Normal noise with a gain per worker (and question)."""

    n_columns: ClassVar[int] = 7

    def _step(
        self, shard: NumberShard, own: ShardPrior, params: NoiseParams, mean: Any, variance: Any
    ) -> NoiseStats:
        gain, spread, covariance = _gains(params)
        stats = self.empty_stats(self.n_columns)
        cells = self.cells(params, gain, gain**2 + spread, covariance)
        step = shard.kernels.gain_step
        step(shard.numbers, cells, self.priors(own, params), *flat(stats), mean, variance)
        return stats

    def worker_step(self, stats: NoiseStats, params: NoiseParams) -> tuple[NoiseParams, Floats]:
        """Solve for gain and bias of each worker; return the expected squared residuals too."""
        first, second, spread, count, cross, means, squares = np.moveaxis(stats.sums, 2, 0)
        gain, _, _ = _gains(params)
        p = params.precision
        # The precision of (gain, bias), and its inverse.
        of_gain = 1 / GAIN_VARIANCE + p * (squares + spread)
        both, of_bias = p * means, np.full_like(p, np.inf)
        if self.has_bias:
            of_bias = 1 / params.omega + p * count
        determinant = of_gain * of_bias - both**2 if self.has_bias else of_gain
        gain_variance = (of_bias if self.has_bias else np.ones_like(p)) / determinant
        bias_variance = of_gain / determinant if self.has_bias else np.zeros_like(p)
        covariance = -both / determinant if self.has_bias else np.zeros_like(p)
        # The gradient at the present gain and bias; one Newton step is exact.
        pull_gain = p * (cross - gain * spread) + (1 - gain) / GAIN_VARIANCE
        pull_bias = p * first - params.bias / params.omega
        move_gain = gain_variance * pull_gain + covariance * pull_bias
        move_bias = covariance * pull_gain + bias_variance * pull_bias
        new_gain = gain + move_gain
        rest = (
            second - 2 * (move_bias * first + move_gain * cross) + move_bias**2 * count
            + 2 * move_bias * move_gain * means + move_gain**2 * squares
        )  # fmt: skip
        rest = np.maximum(rest, 0.0) + new_gain**2 * spread
        expected = (
            rest + bias_variance * count + 2 * covariance * means
            + gain_variance * (squares + spread)
        )  # fmt: skip
        moved = replace(
            params, bias=params.bias + move_bias, bias_variance=bias_variance, gain=new_gain,
            gain_variance=gain_variance, gain_covariance=covariance,
        )  # fmt: skip
        return moved, np.maximum(expected, 0.0)

    def global_step(self, stats: NoiseStats, params: NoiseParams) -> NoiseParams:
        """Update as without gains, and move a common gain to the spread of the tasks."""
        params = super().global_step(stats, params)
        return params if self.fixed_level else self._common_gain(params)

    def center(self, params: NoiseParams) -> NoiseParams:
        r"""Move the bias that follows the gains to the level of the tasks.

        With :math:`z + \delta` the bias is :math:`b - g \delta`; its expected square is smallest
        at :math:`\delta = \sum E[g b] / \sum E[g^2]`.
        """
        used = params.count > 0
        gain, spread, covariance = _gains(params)
        bias, variance, mean = params.bias, params.bias_variance, params.mean
        if not self.fixed_level:
            squares = ((gain**2 + spread) * used).sum(axis=0)
            shift = ((gain * bias + covariance) * used).sum(axis=0) / np.maximum(squares, 1e-300)
            bias, mean = bias - gain * shift, mean + shift
            variance = variance - 2 * shift * covariance + shift**2 * spread
            covariance = covariance - shift * spread
        n = np.maximum(used.sum(axis=0), 1)
        omega = np.maximum(((bias**2 + variance) * used).sum(axis=0) / n, self.floor)
        return replace(
            params, bias=bias, bias_variance=variance, gain_covariance=covariance, mean=mean,
            omega=omega,
        )  # fmt: skip

    def _common_gain(self, params: NoiseParams) -> NoiseParams:
        r"""Scale all gains of a question by the factor that maximises their prior.

        With :math:`t g` and :math:`z / t` the likelihood stays; the factor is the root of
        :math:`t^2 \sum E[g^2] - t \sum E[g] - \gamma^2 J = 0`.
        """
        used = params.count > 0
        gain, spread, covariance = _gains(params)
        first, second = (gain * used).sum(axis=0), ((gain**2 + spread) * used).sum(axis=0)
        n = used.sum(axis=0)
        root = np.sqrt(first**2 + 4 * GAIN_VARIANCE * n * second)
        t = np.where(n > 0, (first + root) / np.where(n > 0, 2 * second, 1.0), 1.0)
        return replace(
            params, gain=gain * t, gain_variance=spread * t**2, gain_covariance=covariance * t,
            mean=params.mean / t, variance=np.maximum(params.variance / t**2, self.floor),
        )  # fmt: skip

    def data_term(self, stats: NoiseStats, params: NoiseParams) -> float:
        """Return the expected log density of the labels."""
        _, second, spread, count, _, means, squares = np.moveaxis(stats.sums, 2, 0)
        gain, width, covariance = _gains(params)
        expected = (
            second + (gain**2 + width) * spread + width * squares
            + params.bias_variance * count + 2 * covariance * means
        )  # fmt: skip
        return log_density(params, expected)

    def objective(self, stats: NoiseStats, params: NoiseParams) -> float:
        """Return the bound, with the divergence of gains and biases from their prior."""
        value = super().objective(stats, params)
        used = params.count > 0
        gain, spread, covariance = _gains(params)
        terms = np.log(GAIN_VARIANCE / spread) - 1
        terms = terms + ((gain - 1) ** 2 + spread) / GAIN_VARIANCE
        if self.has_bias:  # the determinant of the pair, over that of both alone
            terms = terms - np.log1p(-(covariance**2) / (spread * params.bias_variance))
        return value - float(0.5 * terms[used].sum())


def _gains(params: NoiseParams) -> tuple[Floats, Floats, Floats]:
    """Return the moments of the gains, which are the prior's at the start."""
    if params.gain is None or params.gain_variance is None or params.gain_covariance is None:
        shape = params.bias.shape
        return np.ones(shape), np.full(shape, GAIN_VARIANCE), np.zeros(shape)
    return params.gain, params.gain_variance, params.gain_covariance


@dataclass(eq=False, repr=False, kw_only=True)
class GaussianEM(NoiseEM):
    r"""A bias and a noise per worker, with normal errors, by variational EM.

    .. math::
        y_{ij} = z_i + b_j + \varepsilon, \quad \varepsilon \sim N(0, \sigma_j^2), \qquad
        z_i \sim N(\mu, \tau^2), \quad b_j \sim N(0, \omega^2)

    and :math:`\log \sigma_j^2` has the density
    :math:`\propto (\sigma^2)^{-a} e^{-a s^2 / \sigma^2}`. All of :math:`\mu, \tau, \omega, s` are
    estimated, so that no prior has units. In :math:`\tau^2` two tasks count at the variance of all
    labels, because a few tasks cannot show that all tasks are equal.

    Use it when workers differ in care or have a bias, and labels far off are rare. Cost per
    iteration: O(annotations).

    Parameters
    ----------
    prior : float
        :math:`a`; the typical noise of the crowd counts as :math:`2a` labels of every worker.
    bias : bool
        Estimate a bias per worker.
    gain : bool
        Estimate a gain per worker, :math:`y = \pi + b_j + g_j (z - \pi) + \varepsilon` around the
        mean label :math:`\pi`, with :math:`g_j \sim N(1, .2^2)`. It helps if workers use the scale
        to different extents, and hurts if few labels make shrinkage look like a gain.
    scale : {"linear", "log"}
        With "log" the model is of the logarithms of the labels.
    max_iter, tol : int, float
        Maximum number of passes; largest change of a :math:`\log \sigma_j^2` that counts as
        converged.

    Attributes
    ----------
    values_, variance_, low_, high_ : (n_tasks,)
        Posterior mean, variance and 95% interval of :math:`z_i`, with biases and level integrated
        out. With 1,000 workers or more the biases count as independent.
    freedom_ : (n_tasks,)
        Degrees of freedom of the variances; intervals have quantiles of t distributions.
    noise_freedom_, bias_freedom_ : (n_questions,)
        Degrees of freedom of the noise, and of the spread of the biases.
    joint_variance_ : (n_questions, 1 + n_workers, 1 + n_workers)
        Joint variance of level and biases, for predictions; not with 1,000 workers or more.
    level_variance_ : (n_questions,)
        :math:`\omega^2 / (J - 1)` for :math:`J` workers: their mean (or median) bias is set to
        zero, and nobody knows it. 0 if known numbers or a prior fix the level.
    bias_, noise_ : (n_workers,)
        :math:`\beta_j` (the mean over questions) and :math:`\sigma_j`.
    worker_weight_ : (n_workers,)
        :math:`\sigma_j^{-2}` over its sum.
    truth_mean_, truth_variance_ : (n_questions,)
        :math:`\mu` and :math:`\tau^2`; without questions there is one.
    questions_, question_bias_, question_noise_ : tuple, (n_workers, n_questions), (n_questions,)
        Names of the questions, bias by worker and question, and factor on the noise.
    gain_, gain_variance_ : (n_workers, n_questions)
        Mean and variance of the gains, with ``gain``.
    question_bias_variance_ : (n_workers, n_questions)
        Posterior variance of the biases.
    typical_noise_ : float
        :math:`s`, the noise of a worker that the fit has not seen.
    history_ : tuple
        The variational bound, which never decreases.

    Notes
    -----
    The interval covers the disagreement between workers. Errors that all workers share are not in
    it, and on real crowds it is often too narrow: ``calibrated(gold)`` widens it.

    If the labels have a column ``question``, level, spread and biases are estimated for each
    question. The noise of a worker is shared, times a factor per question. A known number fixes
    its task, and the level. The task prior is a mean and a variance for each task instead of
    :math:`\mu, \tau^2`.

    After each pass the mean bias moves to the level of the tasks. That leaves the likelihood as it
    is and makes convergence about ten times as fast.

    References
    ----------
    V. C. Raykar et al. (2010). Learning from crowds. JMLR 11, 1297-1322, section 5.

    Examples
    --------
    >>> task = ["t1", "t1", "t2", "t2", "t3", "t3", "t4", "t4"]
    >>> labels = [1.0, 3.0, 2.0, 4.1, 5.0, 6.9, 3.0, 5.0]
    >>> model = GaussianEM().fit((task, ["ann", "bob"] * 4, labels))
    >>> model.bias_.round(1)  # bob says two more than ann
    array([-1.,  1.])
    """

    gain: bool = False

    promises: ClassVar[Tags] = Tags(
        monotone=True, likelihood=True, pooled=True, online=True, shardable=True
    )
    saves: ClassVar[dict[str, Saved]] = {
        "gain_": SavedArray("J Q", optional=lambda method: not method.gain),
        "gain_variance_": SavedArray("J Q", "amount", optional=lambda method: not method.gain),
        "gain_covariance_": SavedArray("J Q", optional=lambda method: not method.gain),
    }

    limits: ClassVar[Limits] = {"gain": Flag()}

    def _model(self, problem: NumberProblem, pivot: Floats) -> NoiseModel:
        shape = self._shape(problem, pivot)
        if self.gain:  # a common gain changes the variance of the tasks, which has no prior then
            return GainModel(**{**shape, "spread": 0.0})
        return GaussianModel(**shape)

    def _learned(self, data: CrowdNumbers, pivot: Floats, run: LoopResult) -> dict[str, Any]:
        learned = super()._learned(data, pivot, run)
        if not self.gain:
            return learned
        gain, spread, covariance = _gains(run.params)
        return learned | {
            "gain": gain, "gain_variance": spread, "gain_covariance": covariance,
        }  # fmt: skip

    def _fitted(self, problem: NumberProblem) -> tuple[NoiseModel, NoiseParams]:
        model, params = super()._fitted(problem)
        if not self.gain:
            return model, params
        place = self._question_places(problem.data)
        gain, spread, covariance = (np.ones_like(params.bias), np.zeros_like(params.bias),
                                    np.zeros_like(params.bias))  # fmt: skip
        known = len(self.noise_)
        gain[:known] = self.gain_[:, place]
        spread[:known] = self.gain_variance_[:, place]
        covariance[:known] = self.gain_covariance_[:, place]
        return model, replace(
            params, gain=gain, gain_variance=spread, gain_covariance=covariance
        )  # fmt: skip
