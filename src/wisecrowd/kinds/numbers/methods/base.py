"""Base of the methods for numbers: scale of the labels, gold, intervals and their calibration."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.findings import Finding, not_converged
from wisecrowd.core.messages.option_spelling import for_reader, option, parameter
from wisecrowd.core.parameter_checks import Choice, Limits, check_number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedValue, number_between
from wisecrowd.core.types import Floats
from wisecrowd.kernels import kernels_for
from wisecrowd.kernels.arguments import TaskNumbers
from wisecrowd.kinds.numbers.answers import (
    SCALES,
    TWO_SIDED_95,
    NumberAnswers,
    NumberPrior,
    normal_interval,
    t_quantiles,
)
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods.facts import (
    DIFFERENT_SCALES,
    UNKNOWN_SHARE,
    different_scales,
    inside_range,
    least_variance,
    logarithms,
    overall_mean,
    overall_variance,
    scale_findings,
    skewness,
)
from wisecrowd.kinds.numbers.methods.intervals import SHARED_BIAS, calibrate, is_correction

NumberProblem = Problem[CrowdNumbers, NumberPrior]

MOST_CHECKED = 100_000  # labels from which the skewness is estimated
LEAST_CHECKED = 30  # labels that an estimate of the skewness needs
MORE_SKEWED = 1.0  # by this much the residuals must be more skewed than those of the logarithms
DOMINANT = 0.9  # share of one worker in the weights
COLLAPSED = 0.1  # variance of the values of tasks, as a share of that of their means


class TaskEstimates(NamedTuple):
    """Estimates, variances and degrees of freedom (n_tasks,), on the scale of the method.

    Without degrees of freedom the variances are taken as known.
    """

    mean: Floats
    variance: Floats
    freedom: Floats | None = None


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
    freedom_ : (n_tasks,), if the method estimates them
        Degrees of freedom of the variances; the intervals are those of t distributions.
    interval_factor_ : float
        Factor on the standard deviations: 1, or as :meth:`calibrated` estimates it.
    correction_ : (float, float)
        Level and slope with which :meth:`calibrated` corrects values, 0 and 1 without.
    """

    scale: str = "linear"

    takes: ClassVar[str] = "numbers"
    takes_prior: ClassVar[bool] = False
    saves: ClassVar[dict[str, Saved]] = {
        "interval_factor_": number_between(0.0, math.inf),
        "correction_": SavedValue(is_correction, "a level and a slope", optional=True),
    }

    limits: ClassVar[Limits] = {"scale": Choice(SCALES)}

    def _fit_numbers(self, problem: NumberProblem) -> Fit:
        raise TypeError(f"{type(self).__name__} must define _fit_numbers.")

    def _predict_numbers(self, problem: NumberProblem) -> TaskEstimates:
        raise TypeError(f"{type(self).__name__} must define _predict_numbers.")

    def _shares(self, data: CrowdNumbers) -> Floats | None:
        """Return the weights (E,) of labels in the value of their task, None if it is no mean."""
        return None

    def _share_factor(self, data: CrowdNumbers) -> Floats:
        """Return the variance (n_tasks,) of a value over that of a mean with these weights."""
        return np.ones(data.n_tasks)

    # --------------------------------------------------------------------------------- scale

    def _fit(self, problem: NumberProblem) -> Fit:
        scaled = self._on_scale(problem)
        found = self._fit_numbers(scaled)
        scales = different_scales(problem.data)
        notes = [
            *scale_findings(problem.data, scales), *shared_bias_findings(problem.prior),
            *one_label_findings(problem.data), *equal_labels(problem.data),
            *collapsed_findings(scaled.data, found),
        ]  # fmt: skip
        if n_compared(problem.data) > 0:  # without, more iterations would not tell the noise either
            notes += self._unfinished(found)
        if self.scale == "linear":
            notes += log_scale_findings(problem.data)
        return replace(
            found,
            answers=self._answers(found.answers, scaled, 1.0, scales is not None),
            findings=(*found.findings, *notes),
            extra={**found.extra, "interval_factor": 1.0, "correction": (0.0, 1.0)},
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
        mean, variance, freedom = estimates
        level, slope = vars(self).get("correction_", (0.0, 1.0))
        mean, variance = level + slope * mean, slope**2 * variance
        if prior.gold is not None:
            known = ~np.isnan(prior.gold)
            mean = np.where(known, prior.gold, mean)
            variance = np.where(known, 0.0, variance)
        return NumberAnswers.normal(mean, variance, self._scale(), factor, freedom)

    def _scale(self) -> str:
        """Return the scale on which the fit works."""
        return self.scale

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
        self._require_fitted()
        check_number("level", level, 1e-6, 1 - 1e-6)
        width = self.interval_factor_ * self._quantiles(0.5 + level / 2)
        return normal_interval(self._fitted_mean(), self.variance_, self._scale(), width)

    def _quantiles(self, probability: float) -> Any:
        """Return the quantile of the error of each value, in standard deviations."""
        freedom = vars(self).get("freedom_")
        if freedom is not None:
            return t_quantiles(probability, freedom)
        from scipy.special import ndtri

        return float(ndtri(probability))

    def _fitted_mean(self) -> Floats:
        return np.log(self.values_) if self._scale() == "log" else np.asarray(self.values_)

    def calibrated(self, gold: Any) -> Self:
        """Return a copy that is calibrated on known numbers.

        With ten known numbers or more the intervals get a common factor, with 30 or more level and
        slope of the values are corrected first; see
        :func:`~wisecrowd.kinds.numbers.methods.intervals.calibrate`.

        Parameters
        ----------
        gold : mapping from task to number, (task, value) frame, or (n_tasks,) array with NaN
            Known numbers of tasks; the fit must not have seen them.
        """
        made: Self = calibrate(self, gold)
        return made


# ------------------------------------------------------------------------------------ logarithms


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


def shared_bias_findings(prior: NumberPrior) -> list[Finding]:
    """Say what intervals cannot show, unless known numbers were given."""
    if prior.gold is not None and not np.isnan(prior.gold).all():
        return []
    return [
        Finding(
            SHARED_BIAS, "info", 0.0, (),
            "The interval covers disagreement between workers. An error that all workers share "
            "(all underestimate, all compress the scale) cannot be seen in labels.",
            "10 known numbers widen the intervals, and 30 also move level and slope: "
            + for_reader(
                "model.calibrated(gold).",
                "wisecrowd aggregate FILE --type numbers --gold KNOWN --calibrate.",
            ),
        )
    ]  # fmt: skip


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
        skewness((value - task_medians(replace(some, value=value))[some.task])[several])
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
    return [] if n_compared(data) > 0 else [one_label_finding()]


def one_label_finding() -> Finding:
    """Return the finding that no task has two labels."""
    return Finding(
        "one-label-per-task", "medium", 1.0, (),
        "No task has two labels, so the noise of workers cannot be told from differences "
        "between tasks, and intervals are a guess.",
        "Collect a second label for some tasks.",
    )  # fmt: skip


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


def inside_labels(estimates: TaskEstimates, data: CrowdNumbers) -> TaskEstimates:
    """Return estimates inside the range of their task's labels, with 95% intervals that hold it."""
    used = data.weights > 0
    mean, variance, freedom = estimates
    width = TWO_SIDED_95 if freedom is None else t_quantiles(0.975, freedom)
    found = inside_range(mean, variance, data.task[used], data.value[used], width)
    return TaskEstimates(*found, freedom)


def with_unknown_noise(estimates: TaskEstimates, data: CrowdNumbers, scale: str) -> TaskEstimates:
    """Return estimates with the errors that are assumed if no task has two labels.

    Half of the variance of all labels is then noise. If all labels are equal, as a single one is,
    errors may be as large as the numbers. If all labels of a task are equal everywhere, they may
    have been rounded to the last digit that they have.
    """
    if data.n_annotations == 0:
        return estimates
    if n_compared(data) > 0:
        return with_rounding(estimates, data, scale)
    least = UNKNOWN_SHARE * overall_variance(data)
    if not least > 0:
        least = 1.0 if scale == "log" else float(data.value[0]) ** 2 or 1.0
    mean, variance, _ = estimates
    labelled = labels_by_task(data) > 0
    return TaskEstimates(mean, np.where(labelled, np.maximum(variance, least), variance))


def with_rounding(estimates: TaskEstimates, data: CrowdNumbers, scale: str) -> TaskEstimates:
    """Return estimates with the error of rounding, if no two labels of a task differ."""
    if (data.value != data.value[data.indptr[:-1][data.task]]).any():
        return estimates
    mean, variance, freedom = estimates
    raw, size = (np.exp(data.value), np.exp(mean)) if scale == "log" else (data.value, 1.0)
    least = (rounding_unit(raw) / size) ** 2 / 12
    return TaskEstimates(mean, np.maximum(variance, least), freedom)


def rounding_unit(values: Floats) -> float:
    """Return the largest power of ten of which all values are multiples, at least nearly; up to 1.

    Examples
    --------
    >>> rounding_unit(np.array([3.0, 50.0])), rounding_unit(np.array([0.25, 1.5]))
    (1.0, 0.01)
    """
    largest = float(np.abs(values).max(initial=1e-300))
    for digits in range(16):
        scaled = values * 10.0**digits
        if np.abs(scaled - np.round(scaled)).max(initial=0.0) <= 1e-12 * largest * 10.0**digits:
            return float(10.0**-digits)
    return 0.0


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
