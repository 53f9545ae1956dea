r"""StudentEM: a bias and a scale per worker, with heavy-tailed errors.

.. math::
    y_e = z_i + b_j + \sigma_j t_e, \quad t_e \sim t_\nu, \qquad z_i \sim N(\mu, \tau^2),
    \quad b_j \sim N(0, \omega^2)

A t variable is a normal one with a random precision :math:`u_e`. Its expectation weighs the label,

.. math:: u_e = \frac{\nu + 1}{\nu + r_e^2 / \sigma_j^2}, \qquad
          r_e^2 = (y_e - m_i - \beta_j)^2 + v_i + c_j,

so that a label far from the others counts little. The E-step of a task and the sums by worker take
:math:`w_e u_e` in place of :math:`w_e`; everything else is as in
:mod:`wisecrowd.kinds.numbers.methods.gaussian_em`.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.messages.descriptions import describe_value
from wisecrowd.core.parameter_checks import is_auto
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedValue
from wisecrowd.core.types import Floats
from wisecrowd.inference.held_out import scoring_plan
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.held_out import held_out_number_score
from wisecrowd.kinds.numbers.methods.base import NumberProblem
from wisecrowd.kinds.numbers.methods.gaussian_em import NoiseUpdates
from wisecrowd.kinds.numbers.methods.noise_em import NoiseEM
from wisecrowd.kinds.numbers.methods.worker_noise import (
    NoiseModel,
    NoiseParams,
    NoiseStats,
    ShardPrior,
    flat,
)
from wisecrowd.kinds.numbers.scorer import part_of
from wisecrowd.kinds.numbers.shards import NumberShard

CHOICES = (2.0, 4.0, 8.0, math.inf)  # degrees of freedom
NEARLY_NORMAL = 1e9  # degrees of freedom that stand for infinity in the kernel
MOST_ROUNDS = 200  # rounds of weights and means of a task at the end of a fit


class StudentState(NamedTuple):
    """Prior of a shard's tasks, and their mean and variance (n,) after the last pass."""

    prior: ShardPrior
    mean: Floats
    variance: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class StudentModel(NoiseUpdates):
    """Student noise with ``nu`` degrees of freedom."""

    nu: float

    def begin(self, shard: NumberShard) -> StudentState:
        """Start at the medians of the tasks."""
        offset = np.tile(self.pivot, self.n_workers)
        return StudentState(self.shard_prior(shard), *self._medians(shard, offset))

    def local_step(
        self, shard: NumberShard, state: StudentState, params: NoiseParams
    ) -> tuple[StudentState, NoiseStats]:
        """Weigh the labels at the former means, then take new means and new weights."""
        mean, variance = state.mean.copy(), state.variance.copy()
        stats = self._step(shard, state.prior, params, 1, mean, variance)
        return StudentState(state.prior, mean, variance), stats

    def answer(
        self, shard: NumberShard, state: StudentState, params: NoiseParams
    ) -> tuple[tuple[Floats, Floats], NoiseStats]:
        """Return mean and variance (n,) of the tasks, from the medians of the corrected labels.

        The result depends only on labels and parameters, so that prediction repeats the fit.
        """
        mean, variance = self._medians(shard, (self.pivot + params.bias).ravel())
        stats = self._step(shard, state.prior, params, MOST_ROUNDS, mean, variance)
        return (mean, variance), stats

    def _medians(self, shard: NumberShard, offset: Floats) -> tuple[Floats, Floats]:
        medians = shard.kernels.task_medians(shard.numbers, offset, len(self.pivot))
        return np.where(np.isnan(medians), 0.0, medians), np.zeros(shard.n_tasks)

    def _step(
        self,
        shard: NumberShard,
        own: ShardPrior,
        params: NoiseParams,
        n_rounds: int,
        mean: Floats,
        variance: Floats,
    ) -> NoiseStats:
        stats = self.empty_stats(self.n_columns)
        logs = shard.kernels.student_step(
            shard.numbers, self.cells(params, params.bias_variance), self.priors(own, params),
            self.nu, n_rounds, *flat(stats), mean, variance,
        )  # fmt: skip
        return stats._replace(logs=logs)

    def information(
        self, data: Any, rows: Any, params: NoiseParams, estimates: Any, q: int
    ) -> Floats:
        """Return the weights of labels times the information of a t distribution over its scale."""
        task, worker = data.task[rows], data.worker[rows]
        away = data.value[rows] - self.pivot[q] - params.bias[worker, q] - estimates.mean[task]
        square = away**2 + estimates.variance[task] + params.bias_variance[worker, q]
        weight = (self.nu + 1) / (self.nu + square * params.precision[worker, q])
        return np.asarray(weight * (self.nu + 1) / (self.nu + 3))

    def data_term(self, stats: NoiseStats, params: NoiseParams) -> float:
        """Return the expected log density of the labels at the best distribution of the u."""
        nu = self.nu
        log_norm = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - 0.5 * math.log(math.pi * nu)
        if nu >= NEARLY_NORMAL:  # the difference of two large numbers loses its digits
            log_norm = -0.5 * math.log(2 * math.pi)
        norm = params.count * (log_norm + 0.5 * np.log(params.precision))
        return float(norm.sum() - (nu + 1) / 2 * stats.logs)


@dataclass(eq=False, repr=False, kw_only=True)
class StudentEM(NoiseEM):
    r"""A bias and a scale per worker, with Student errors, by variational EM.

    .. math::
        y_{ij} = z_i + b_j + \sigma_j t, \quad t \sim t_\nu, \qquad
        z_i \sim N(\mu, \tau^2), \quad b_j \sim N(0, \omega^2)

    and :math:`\log \sigma_j^2` has the density
    :math:`\propto (\sigma^2)^{-a} e^{-a s^2 / \sigma^2}`. One label, however far off, moves the
    value of its task by a bounded amount only.

    Use it when some labels are far off, such as typing errors or guesses, and workers differ. Cost
    per iteration: O(annotations), about twice that of GaussianEM.

    Parameters
    ----------
    nu : 2, 4, 8, inf or "auto"
        Degrees of freedom; few mean heavy tails, and inf is GaussianEM. "auto" takes the value
        that predicts held-out labels best, at the cost of up to 20 more fits.
    prior : float
        :math:`a`; the typical scale of the crowd counts as :math:`2a` labels of every worker.
    bias : bool
        Estimate a bias per worker.
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
        :math:`\beta_j` and :math:`\sigma_j`, which is the scale of the t distribution.
    worker_weight_ : (n_workers,)
        :math:`\sigma_j^{-2}` over its sum.
    nu_ : float
        Degrees of freedom.
    truth_mean_, truth_variance_ : (n_questions,)
        :math:`\mu` and :math:`\tau^2`; without questions there is one.
    questions_, question_bias_, question_noise_ : tuple, (n_workers, n_questions), (n_questions,)
        Names of the questions, bias by worker and question, and factor on the scale.
    question_bias_variance_ : (n_workers, n_questions)
        Posterior variance of the biases.
    typical_noise_ : float
        :math:`s`, the scale of a worker that the fit has not seen.
    history_ : tuple
        The variational bound, which never decreases.

    Notes
    -----
    A label of weight w counts as w equal labels, each with its own precision, so that the weight
    does not enter :math:`u_e`.

    A task whose labels form two groups may have two optima. The value is the one that is reached
    from the median of its labels, minus the workers' biases.

    References
    ----------
    K. L. Lange, R. J. A. Little and J. M. G. Taylor (1989). Robust statistical modeling using the t
    distribution. JASA 84, 881-896.

    Examples
    --------
    >>> task = ["t1", "t1", "t1", "t2", "t2", "t2"]
    >>> labels = [1.0, 1.1, 900.0, 2.0, 2.1, 2.2]
    >>> model = StudentEM(bias=False).fit((task, ["ann", "bob", "cem"] * 2, labels))
    >>> bool(model.values_.max() < 3)
    True
    """

    nu: Any = 4

    promises: ClassVar[Tags] = Tags(monotone=True, pooled=True, online=True)
    saves: ClassVar[dict[str, Saved]] = {
        "nu_": SavedValue(lambda value: value in CHOICES, "2, 4, 8 or inf"),
    }

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        is_number = isinstance(self.nu, int | float) and not isinstance(self.nu, bool)
        if not is_auto(self.nu) and not (is_number and self.nu in CHOICES):
            raise ParameterError(f"nu is {describe_value(self.nu)}; give 2, 4, 8, inf or auto.")

    def _fit_numbers(self, problem: NumberProblem) -> Fit:
        chosen = self if not is_auto(self.nu) else self._with_best_nu(problem)
        found = NoiseEM._fit_numbers(chosen, problem)
        found.extra["nu"] = float(chosen.nu)
        return found

    def _continued(self, problem: NumberProblem, passes: int) -> Fit:
        """Return the fit after some passes, with the degrees of freedom of the previous fit."""
        fixed = copy.deepcopy(self).set_params(nu=self.nu_)
        return NoiseEM._continued(fixed, problem, passes)

    def _with_best_nu(self, problem: NumberProblem) -> StudentEM:
        """Return a copy with the degrees of freedom that predict held-out labels best."""
        plan = scoring_plan(problem.data)
        if plan.n_hidden == 0:
            return self._copy(4.0)
        prior = part_of(problem.prior, plan.labels.rows)

        def score(nu: float) -> float:
            method = self._copy(nu)

            def values(visible: CrowdNumbers) -> Floats:
                part = Problem(visible, prior, problem.engine, None, problem.rng)
                found: Floats = NoiseEM._fit_numbers(method, part).answers.mean
                return found

            return held_out_number_score(values, plan).mean

        scores = {nu: score(nu) for nu in CHOICES}
        best = max(scores.values())
        # Equal scores go to the heavier tail, so that rounding does not choose.
        return self._copy(min(nu for nu in CHOICES if scores[nu] >= best - 1e-9 * abs(best)))

    def _copy(self, nu: float) -> StudentEM:
        return StudentEM(**{**self.get_params(deep=False), "nu": nu})

    def _model(self, problem: NumberProblem, pivot: Floats) -> NoiseModel:
        nu = self.nu if not is_auto(self.nu) else self.nu_
        nu = min(float(nu), NEARLY_NORMAL)
        return StudentModel(**self._shape(problem, pivot), nu=nu)
