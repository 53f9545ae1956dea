"""Base of the methods for numbers: scale of the labels, gold, intervals and their calibration."""

from __future__ import annotations

import copy
import inspect
import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.checks.fit_checks import not_converged
from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.option_spelling import for_reader, option, parameter
from wisecrowd.core.number_answers import (
    SCALES,
    NumberAnswers,
    normal_interval,
)
from wisecrowd.core.number_prior import NumberPrior, known_numbers
from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.core.parameter_checks import check_choice, check_number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, number_between
from wisecrowd.engines.packed_numbers import PackedNumbers
from wisecrowd.families.number_facts import (
    UNKNOWN_SHARE,
    least_variance,
    overall_mean,
    overall_variance,
)
from wisecrowd.families.number_scales import (
    DIFFERENT_SCALES,
    different_scales,
    inside_range,
    scale_findings,
)
from wisecrowd.kernels import kernels_for
from wisecrowd.kernels.arguments import TaskNumbers

Floats = NDArray[np.float64]
NumberProblem = Problem[CrowdNumbers, NumberPrior]

MOST_CHECKED = 100_000  # labels from which the skewness is estimated
LEAST_CHECKED = 30  # labels that an estimate of the skewness needs
MORE_SKEWED = 1.0  # by this much the residuals must be more skewed than those of the logarithms
DOMINANT = 0.9  # share of one worker in the weights
COLLAPSED = 0.1  # variance of the values of tasks, as a share of that of their means
LEAST_GOLD = 10  # tasks that the calibration of intervals needs
CALIBRATED_AT = 0.9  # share of the gold that calibrated intervals of this level contain


class TaskEstimates(NamedTuple):
    """Estimates and their variances (n_tasks,), on the scale that the method works on."""

    mean: Floats
    variance: Floats


@dataclass(eq=False, repr=False, kw_only=True)
class NumberAggregator(Aggregator):
    """Base of the methods for numbers.

    A method defines ``_fit_numbers(problem) -> Fit`` and ``_predict_numbers(problem)``, both with
    :class:`TaskEstimates` as answers. Problems are on the scale of the method: labels, prior and
    gold are logarithms if ``scale`` is "log". Known tasks get their number here.

    Parameters
    ----------
    scale : {"linear", "log"}
        With "log" the method works on the logarithms of the labels, which must be positive.

    Attributes
    ----------
    values_ : (n_tasks,)
        Estimated numbers; on a log scale the exponential of the mean logarithm, which is a median.
    variance_ : (n_tasks,)
        Variance of the estimate; on a log scale of its logarithm.
    low_, high_ : (n_tasks,)
        Limits of the 95% interval between workers.
    interval_factor_ : float
        Factor on the standard deviations: 1, or as :meth:`calibrated` estimates it.
    """

    scale: str = "linear"

    takes: ClassVar[str] = "numbers"
    takes_prior: ClassVar[bool] = False
    saves: ClassVar[dict[str, Saved]] = {"interval_factor_": number_between(0.0, math.inf)}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_choice("scale", self.scale, SCALES)

    def _fit_numbers(self, problem: NumberProblem) -> Fit:
        raise TypeError(f"{type(self).__name__} must define _fit_numbers.")

    def _fit_pack(self, problem: NumberProblem) -> Fit:
        raise TypeError(f"{type(self).__name__} must define _fit_pack.")

    def _predict_numbers(self, problem: NumberProblem) -> TaskEstimates:
        raise TypeError(f"{type(self).__name__} must define _predict_numbers.")

    # --------------------------------------------------------------------------------- scale

    def _fit(self, problem: NumberProblem) -> Fit:
        if isinstance(problem.data, PackedNumbers):
            return self._fit_pack(problem)
        scaled = self._on_scale(problem)
        found = self._fit_numbers(scaled)
        scales = different_scales(problem.data)
        notes = [
            *scale_findings(problem.data, scales),
            *one_label_findings(problem.data), *equal_labels(problem.data),
            *collapsed_findings(scaled.data, found), *self._unfinished(found),
        ]  # fmt: skip
        if self.scale == "linear":
            notes += log_scale_findings(problem.data)
        return replace(
            found,
            answers=self._answers(found.answers, scaled, 1.0, scales is not None),
            findings=(*found.findings, *notes),
            extra={**found.extra, "interval_factor": 1.0},
        )

    def _predict(self, problem: NumberProblem) -> NumberAnswers:
        scaled = self._on_scale(problem)
        apart = any(finding.id == DIFFERENT_SCALES for finding in self.findings_)
        estimates = self._predict_numbers(scaled)
        return self._answers(estimates, scaled, self.interval_factor_, apart)

    def _answers(
        self, estimates: TaskEstimates, scaled: NumberProblem, factor: float, apart: bool
    ) -> NumberAnswers:
        """Return the answers; ``apart`` says that workers use different scales."""
        prior, data = scaled.prior, scaled.data
        if not prior.given:
            estimates = with_unknown_noise(estimates, data, self.scale)
            estimates = inside_labels(estimates, data) if apart else estimates
        mean, variance = estimates
        if prior.gold is not None:
            known = ~np.isnan(prior.gold)
            mean = np.where(known, prior.gold, mean)
            variance = np.where(known, 0.0, variance)
        return NumberAnswers.normal(mean, variance, self.scale, factor)

    def _on_scale(self, problem: NumberProblem) -> NumberProblem:
        """Return the problem on the scale of the method; refuse a prior that it cannot use."""
        name, prior = type(self).__name__, problem.prior
        if prior.given and not self.takes_prior:
            raise ParameterError(
                f"{name} has no prior of the tasks; leave out {option('task_prior', '...')}, or "
                f"use {for_reader('GaussianEM', '-m gaussian-em')}."
            )
        if self.scale == "linear":
            return problem
        value = logarithms(problem.data.value, _row_of(problem.data, "label"), name)
        data = replace(problem.data, value=value)
        return replace(problem, data=data, prior=_log_prior(prior, problem.data, name))

    def _unfinished(self, found: Fit) -> list[Finding]:
        usual = inspect.signature(type(self).__init__).parameters.get("max_iter")
        if found.converged or usual is None or self.get_params()["max_iter"] < usual.default:
            return []
        return [not_converged(found.n_iter, type(self).__name__)]

    # ----------------------------------------------------------------------------- intervals

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the limits (n_tasks,) of intervals that contain the number with this probability.

        They cover the disagreement between workers. Errors that all workers share are not in them:
        calibrate them on known numbers with :meth:`calibrated`.

        Parameters
        ----------
        level : float
            Probability, above 0 and below 1.
        """
        from scipy.special import ndtri

        self._require_fitted()
        check_number("level", level, 1e-6, 1 - 1e-6)
        width = self.interval_factor_ * float(ndtri(0.5 + level / 2))
        return normal_interval(self._fitted_mean(), self.variance_, self.scale, width)

    def _fitted_mean(self) -> Floats:
        return np.log(self.values_) if self.scale == "log" else np.asarray(self.values_)

    def calibrated(self, gold: Any) -> Self:
        """Return a copy whose intervals are calibrated on known numbers; see :func:`calibrate`."""
        made: Self = calibrate(self, gold)
        return made


def calibrate(method: Any, gold: Any) -> Any:
    r"""Return a copy of a fitted method with intervals that are calibrated on known numbers.

    All standard deviations get one factor, with which the 90% intervals contain 90% of the gold:
    the quantile of :math:`|z_i - m_i| / \sqrt{v_i}` at :math:`\lceil .9 (n + 1) \rceil / n`
    over that of the normal distribution.

    Parameters
    ----------
    method : fitted method for numbers
        Fitted without this gold, because known tasks have no error.
    gold : mapping from task to number, (task, value) frame, or (n_tasks,) array with NaN
        Known numbers of at least ten tasks.

    Examples
    --------
    >>> from wisecrowd.aggregation import Mean
    >>> task, worker = [i for i in range(20) for _ in "ab"], ["ann", "bob"] * 20
    >>> fitted = Mean().fit((task, worker, [i % 7 for i in range(40)]))
    >>> low, high = fitted.interval(0.9)
    >>> wider = calibrate(fitted, dict(zip(range(20), high + (high - low) / 2)))
    >>> round(wider.interval_factor_, 6)
    2.0
    """
    from scipy.special import ndtri

    method._require_fitted()
    tasks: Any = _Tasks(method.tasks_)
    known = known_numbers(gold, tasks, "gold")
    if method.scale == "log":
        rows = np.flatnonzero(~np.isnan(known))
        known[rows] = logarithms(
            known[rows], lambda i: f"gold of task {method.tasks_[rows[i]]!r}",
            type(method).__name__,
        )  # fmt: skip
    mean = method._fitted_mean()
    used = ~np.isnan(known) & (method.variance_ > 0)
    n = int(used.sum())
    if n < LEAST_GOLD:
        raise DataError(
            f"Gold has {n} tasks whose number the fit estimated, and the calibration of intervals "
            f"needs {LEAST_GOLD}; give more gold, and fit without it."
        )
    ratio = np.sort(np.abs(known[used] - mean[used]) / np.sqrt(method.variance_[used]))
    place = min(math.ceil(CALIBRATED_AT * (n + 1)), n) - 1
    factor = float(ratio[place] / ndtri(0.5 + CALIBRATED_AT / 2))
    answers = NumberAnswers.normal(mean, method.variance_, method.scale, factor)
    made = copy.copy(method)
    made.interval_factor_, made.low_, made.high_ = factor, answers.low, answers.high
    return made


@dataclass(frozen=True, eq=False)
class _Tasks:
    """The ids of tasks alone, which are all that reading gold needs."""

    tasks: NDArray[Any]

    @property
    def n_tasks(self) -> int:
        return len(self.tasks)


# ------------------------------------------------------------------------------------ logarithms


def logarithms(values: Floats, where: Any, name: str) -> Floats:
    """Return the logarithms of positive numbers; refuse others and say where the first is."""
    bad = ~(values > 0)
    if bad.any():
        e = int(np.argmax(bad))
        raise DataError(
            f"The {where(e)} is {values[e]:g}, which has no logarithm; {name} with "
            f"{parameter('scale', 'log')} needs numbers above 0: correct it or use "
            f"{parameter('scale', 'linear')}."
        )
    return np.log(values)


def _row_of(data: CrowdNumbers, what: str) -> Any:
    return lambda e: (
        f"{what} of task {data.tasks[data.task[e]]!r} by worker {data.workers[data.worker[e]]!r}"
    )


def _log_prior(prior: NumberPrior, data: CrowdNumbers, name: str) -> NumberPrior:
    """Return gold as logarithms, and the log-normal prior with the given mean and variance."""
    mean, variance, gold = prior.mean, prior.variance, prior.gold
    if mean is not None and variance is not None:
        log_mean = logarithms(mean, lambda i: f"prior mean of task {data.tasks[i]!r}", name)
        variance = np.log1p(variance / mean**2)
        mean = log_mean - variance / 2
    if gold is not None:
        rows = np.flatnonzero(~np.isnan(gold))
        gold = gold.copy()
        gold[rows] = logarithms(gold[rows], lambda i: f"gold of task {data.tasks[rows[i]]!r}", name)
    return NumberPrior(mean, variance, gold)


# -------------------------------------------------------------------------------------- findings


def log_scale_findings(data: CrowdNumbers) -> list[Finding]:
    """Suggest a log scale if labels are positive and far more skewed than their logarithms."""
    if not (data.value > 0).all():
        return []
    step = max(1, -(-data.n_annotations // MOST_CHECKED))
    some = data[::step] if step > 1 else data
    several = some.labels_per_task[some.task] >= 3
    if several.sum() < LEAST_CHECKED:
        return []
    plain, logs = (
        _skewness(value - task_medians(replace(some, value=value))[some.task], several)
        for value in (some.value, np.log(some.value))
    )
    if not plain - logs > MORE_SKEWED:
        return []
    return [
        Finding(
            "log-scale", "info", plain - logs, (),
            f"The labels are positive, and their deviations from the median of the task are more "
            f"skewed (skewness {plain:.1f}) than those of their logarithms ({logs:.1f}).",
            f"Try {parameter('scale', 'log')}.",
        )
    ]  # fmt: skip


def _skewness(values: Floats, used: NDArray[np.bool_]) -> float:
    centred = values[used] - values[used].mean()
    spread = np.mean(centred**2)
    return float(np.mean(centred**3) / spread**1.5) if spread > 0 else 0.0


def equal_labels(data: CrowdNumbers) -> list[Finding]:
    """Return a finding if all numbers are equal."""
    if data.n_annotations < 2 or np.ptp(data.value) > 0:
        return []
    return [
        Finding(
            "constant-labels", "low", 1.0, (),
            f"All {data.n_annotations} labels are {data.value[0]:g}: they show neither how tasks "
            "nor how workers differ.",
            "Check the column of the labels.",
        )
    ]  # fmt: skip


def one_label_findings(data: CrowdNumbers) -> list[Finding]:
    """Report that no task has labels by two workers, so that noise cannot be estimated."""
    if n_compared(data) > 0:
        return []
    return [
        Finding(
            "one-label-per-task", "medium", 1.0, (),
            "No task has two labels, so the noise of workers cannot be told from differences "
            "between tasks, and intervals are a guess.",
            "Collect a second label for some tasks.",
        )
    ]  # fmt: skip


def collapsed_findings(data: CrowdNumbers, found: Fit) -> list[Finding]:
    """Report that one worker outweighs all others and gives all tasks nearly the same value.

    A worker who repeats one number has no noise if all tasks are equal; the likelihood of that
    explanation has no bound.
    """
    weight, several = found.extra.get("worker_weight"), data.labels_per_task > 1
    if weight is None or several.sum() < 2 or not weight.max() > DOMINANT:
        return []
    means, values = task_means(data, data.weights)[several], found.answers.mean[several]
    if not np.nanvar(values) < COLLAPSED * np.nanvar(means):
        return []
    worker = data.workers[int(np.argmax(weight))]
    return [
        Finding(
            "one-worker-decides", "high", float(weight.max()), (worker,),
            f"Worker {worker!r} has {weight.max():.1%} of all weight, and all tasks get nearly the "
            "same value, although their means differ: values and intervals cannot be trusted.",
            "Check whether this worker always gives the same number, and leave it out, or use "
            + for_reader("Median.", "-m median."),
        )
    ]  # fmt: skip


def n_compared(data: CrowdNumbers) -> int:
    """Return the number of tasks with at least two labels of positive weight."""
    if data.weight is None:
        return int((data.labels_per_task > 1).sum())
    return int((np.bincount(data.task[data.weight > 0], minlength=data.n_tasks) > 1).sum())


# ------------------------------------------------------------------------------ task statistics


def task_medians(data: CrowdNumbers) -> Floats:
    """Return the weighted median (n_tasks,) of each task's labels, NaN without labels."""
    numbers = TaskNumbers(data.indptr, data.worker, data.value, data.weight, None)
    kernels = kernels_for("worker_noise", data.n_annotations)
    medians: Floats = kernels.task_medians(numbers, np.zeros(max(data.n_workers, 1)), 1)
    return medians


def labels_by_task(data: CrowdNumbers) -> Floats:
    """Return the total weight (n_tasks,) of each task's labels."""
    return np.bincount(data.task, data.weight, data.n_tasks).astype(np.float64)


def task_means(data: CrowdNumbers, weight: Floats) -> Floats:
    """Return the weighted mean (n_tasks,) of each task's labels, NaN without labels."""
    total = np.bincount(data.task, weight, data.n_tasks)
    center = overall_mean(data)
    sums = np.bincount(data.task, weight * (data.value - center), data.n_tasks)
    return np.where(total > 0, center + sums / np.where(total > 0, total, 1.0), np.nan)


def within_variance(data: CrowdNumbers, estimates: Floats, gold: Floats | None) -> float:
    """Return the pooled variance of labels around their task's estimate.

    Each task with labels costs one degree of freedom, except those whose number is known. Without
    degrees of freedom it is the variance of all labels: nothing else bounds the noise.
    """
    weight, total = data.weights, labels_by_task(data)
    free = total > 0 if gold is None else (total > 0) & np.isnan(gold)
    freedom = float(np.where(free, np.maximum(total - 1, 0), total).sum())
    squares = float((weight * (data.value - estimates[data.task]) ** 2).sum())
    if freedom <= 0:
        return max(overall_variance(data), least_variance(data))
    return max(squares / freedom, least_variance(data))


def filled(estimates: Floats, data: CrowdNumbers) -> Floats:
    """Return estimates with the mean of all labels where a task has none."""
    return np.where(np.isnan(estimates), overall_mean(data), estimates)


def inside_labels(estimates: TaskEstimates, data: CrowdNumbers) -> TaskEstimates:
    """Return estimates inside the range of their task's labels, with 95% intervals that hold it."""
    used = data.weights > 0
    return TaskEstimates(*inside_range(*estimates, data.task[used], data.value[used]))


def with_unknown_noise(estimates: TaskEstimates, data: CrowdNumbers, scale: str) -> TaskEstimates:
    """Return estimates with the errors that are assumed if no task has two labels.

    Half of the variance of all labels is then noise. If all labels are equal, as a single one is,
    errors may be as large as the numbers.
    """
    if data.n_annotations == 0 or n_compared(data) > 0:
        return estimates
    least = UNKNOWN_SHARE * overall_variance(data)
    if not least > 0:
        least = 1.0 if scale == "log" else float(data.value[0]) ** 2 or 1.0
    mean, variance = estimates
    labelled = labels_by_task(data) > 0
    return TaskEstimates(mean, np.where(labelled, np.maximum(variance, least), variance))


def worker_residuals(data: CrowdNumbers, estimates: Floats) -> dict[str, Floats]:
    """Return bias and noise (J,) of the workers: mean and root mean square around their mean.

    They describe the deviations from the estimates, and are 0 for workers without labels.
    """
    weight = data.weights
    total = np.bincount(data.worker, weight, data.n_workers)
    count = np.where(total > 0, total, 1.0)
    away = data.value - estimates[data.task]
    bias = np.bincount(data.worker, weight * away, data.n_workers) / count
    rest = (away - bias[data.worker]) ** 2
    noise = np.sqrt(np.bincount(data.worker, weight * rest, data.n_workers) / count)
    return {"bias": bias, "noise": noise}
