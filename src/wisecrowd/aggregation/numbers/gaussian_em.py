r"""GaussianEM: a bias, a noise and, as an option, a gain per worker.

.. math::
    y_e = z_i + b_j + \varepsilon_e, \quad \varepsilon_e \sim N(0, \sigma_j^2), \qquad
    z_i \sim N(\mu, \tau^2), \quad b_j \sim N(0, \omega^2)

The E-step of a task is the posterior of a normal mean:

.. math::
    1 / v_i = 1 / \tau^2 + \sum_e w_e / \sigma_j^2, \qquad
    m_i = v_i \Bigl(\mu / \tau^2 + \sum_e w_e (y_e - \beta_j) / \sigma_j^2\Bigr)

The updates of biases, noise and hyperparameters are in :mod:`wisecrowd.families.worker_noise`.

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
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.core.parameter_checks import check_flag
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.engines.number_shards import NumberShard
from wisecrowd.families.noise_em import NoiseEM
from wisecrowd.families.number_aggregator import NumberProblem
from wisecrowd.families.worker_noise import (
    NoiseModel,
    NoiseParams,
    NoiseStats,
    ShardPrior,
    flat,
    log_density,
)
from wisecrowd.inference.loop import LoopResult

Floats = NDArray[np.float64]
GAIN_VARIANCE = 0.2**2  # of the prior of the gains


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianModel(NoiseModel):
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
        step = shard.kernels("worker_noise").gaussian_step
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
        step = shard.kernels("worker_noise").gain_step
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
        Posterior mean, variance and 95% interval of :math:`z_i`. The variance includes that of
        the level of all tasks.
    level_variance_ : (n_questions,)
        :math:`\omega^2 / (J - 1)` for :math:`J` workers: their mean bias is set to zero, and
        nobody knows it. 0 if known numbers or a prior fix the level.
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

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_flag("gain", self.gain)

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
