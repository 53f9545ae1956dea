r"""CrowdRegressor: the learner of numbers, with a normal model of the workers given a regression.

.. math:: y_e = s_j z_i + b_j + \epsilon_e, \qquad \epsilon_e \sim N(0, \sigma_j^2), \qquad
          z_i \sim N(f(x_i), \tau^2)

Nothing here needs torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.features import as_features
from wisecrowd.core.findings import Finding
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.saved_attributes import (
    Saved,
    SavedArray,
    SavedValue,
    is_finite,
)
from wisecrowd.core.types import Floats
from wisecrowd.kinds.numbers.answers import NumberAnswers, known_numbers, normal_interval
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.learning.base import Outcome, TaskLearner, TrainingSet
from wisecrowd.learning.training.rows_of_features import (
    TASK_ROWS,
    as_ids,
    by_rows,
    is_array,
    recoded,
    require_given,
    wrong_counts,
)

LEAST = 1e-12  # least variance, as a share of the variance of all numbers
PSEUDO_PAIRS = 1.0  # pairs of labels with the noise of the crowd that each worker starts with
MAX_ITER, TOL = 500, 1e-8


@dataclass(frozen=True, eq=False)
class NumberTraining(TrainingSet):
    """Validated input of a fit to numbers.

    Attributes
    ----------
    gold : (N,)
        Known numbers, NaN where unknown.
    valid : (X, values), optional
        Features and true numbers.
    """

    labels: CrowdNumbers
    gold: Floats
    valid: tuple[Any, Floats] | None = None


@dataclass(frozen=True, eq=False)
class LearnedNumbers(Outcome):
    """Results of a fit to numbers.

    Attributes
    ----------
    predicted : (N,)
        The regression's output on the training tasks.
    model : NumberModel
        The workers, and the variance of the truth around the regression.
    """

    predicted: Floats
    model: NumberModel


@dataclass(eq=False, repr=False, kw_only=True)
class CrowdRegressor(TaskLearner):
    """Base class of methods that learn numbers, with ``fit`` and ``predict``.

    A method is a dataclass whose fields are its parameters, with ``_fit(training) ->
    LearnedNumbers`` and ``_numbers(X)``, the regression's output on new features.

    Attributes
    ----------
    tasks_, workers_ : arrays of ids
    values_, variance_, low_, high_ : (N,)
        Posterior of the training tasks from features and labels, and its 95% interval.
    slope_, bias_, noise_ : (J,)
        A worker's number for a task with the true number z has the mean slope z + bias and the
        standard deviation noise.
    residual_variance_ : float
        Variance of the true numbers around the regression.
    """

    takes: ClassVar[str] = "numbers"
    sklearn_type: ClassVar[str | None] = "regressor"
    without_labels: ClassVar[str] = (
        "learns nothing from them, and they get the regression's own answer."
    )
    saves: ClassVar[dict[str, Saved]] = {
        "slope_": SavedArray("J"),
        "bias_": SavedArray("J"),
        "noise_": SavedArray("J", "positive"),
        "residual_variance_": SavedValue(
            lambda value: is_finite(value) and value > 0, "a number above zero"
        ),
    }
    _fit_call = "fit(X, numbers)"

    # -------------------------------------------------------------------------------------- fit

    def _training(
        self, X: Any, y: Any, ids: Any, gold: Any, valid: Any, resume: Any
    ) -> NumberTraining:
        numbers = as_number_targets(y, len(X), ids)
        if numbers.n_annotations == 0:
            raise DataError("There are no annotations to fit; give numbers for some rows of X.")
        if len(X) < 2:
            raise DataError("X has n_samples=1: one task is nothing to learn a regression from.")
        known = np.full(numbers.n_tasks, np.nan)
        if gold is not None:
            known = known_numbers(gold, numbers, "gold")
        return NumberTraining(X, numbers, known, _as_valid(valid), resume)

    def _answer(self, training: NumberTraining, result: LearnedNumbers) -> tuple[Finding, ...]:
        model, gold = result.model, training.gold
        self.slope_, self.bias_, self.noise_ = model.slope, model.bias, model.noise
        self.residual_variance_ = model.variance
        mean, variance = model.posterior(result.predicted, training.labels)
        known = ~np.isnan(gold)
        mean, variance = np.where(known, gold, mean), np.where(known, 0.0, variance)
        vars(self).update(NumberAnswers.normal(mean, variance).attributes({}))
        return ()

    # ---------------------------------------------------------------------------------- predict

    def _numbers(self, X: Any) -> Floats:
        raise TypeError(f"{type(self).__name__} must define _numbers.")

    def _model(self) -> NumberModel:
        return NumberModel(self.slope_, self.bias_, self.noise_, self.residual_variance_)

    def predict(self, X: Any, labels: Any = None, *, tasks: Any = None) -> Floats:
        """Return the (n,) numbers of new tasks.

        Parameters
        ----------
        X : features
        labels : numbers of these tasks by workers of the fit, optional
            With labels, the result is the posterior mean from features and labels. On the training
            tasks it equals ``values_``, except for tasks with gold.
        tasks : (n,) ids, optional
            Task of each row, as in ``fit``.
        """
        return self._posterior(X, labels, tasks)[0]

    def interval(
        self, level: float = 0.95, X: Any = None, labels: Any = None, *, tasks: Any = None
    ) -> tuple[Floats, Floats]:
        """Return the (n,) lower and upper limits of intervals that hold the true number.

        Parameters
        ----------
        level : float
            Probability under the model, between 0 and 1. Errors that all workers share are not
            part of it.
        X, labels, tasks
            Tasks as in :meth:`predict`; without ``X`` those of the fit.
        """
        from scipy.special import ndtri

        check_number("level", level, 0.0, 1 - 1e-12)
        self._require_fitted()
        if X is None:
            mean, variance = self.values_, self.variance_
        else:
            mean, variance = self._posterior(X, labels, tasks)
        return normal_interval(mean, variance, "linear", float(ndtri((1 + level) / 2)))

    def _posterior(self, X: Any, labels: Any, tasks: Any) -> tuple[Floats, Floats]:
        features = self._checked(X)
        predicted = self._numbers(features)
        if labels is None:
            return predicted, np.full(len(predicted), self.residual_variance_)
        known = self._known(as_number_targets(labels, len(features), tasks))
        return self._model().posterior(predicted, known)

    def score(self, X: Any, y: Any, *, tasks: Any = None) -> float:
        """Return R² on true numbers or, on annotations, their mean log density.

        Parameters
        ----------
        X : features
        y : (n,) true numbers, or annotations as in ``fit``
            With annotations, a scikit-learn search selects by the density of held-out numbers and
            needs no gold.
        """
        features = self._checked(X)
        if not isinstance(y, Annotations | tuple) and np.ndim(y) == 1:
            truth = np.asarray(y, dtype=np.float64)
            if len(truth) != len(features):
                raise DataError(
                    f"X has {len(features)} rows and y has {len(truth)} numbers; give one per row."
                )
            error, spread = np.mean((self.predict(X) - truth) ** 2), np.var(truth)
            return float(1 - error / spread) if spread > 0 else -float(error)
        known = self._known(as_number_targets(y, len(features), tasks))
        values = self._model().log_density(self._numbers(features), known)
        return float(np.average(values, weights=known.weights))

    def _known(self, numbers: CrowdNumbers) -> CrowdNumbers:
        """Return numbers in the workers of the fit, without those of unknown workers."""
        return self._by_known_workers(numbers, "numbers")

    # ------------------------------------------------------------------------------------ tables

    def prediction_columns(
        self, X: Any, ids: Any = None, labels: Any = None
    ) -> dict[str, NDArray[Any]]:
        """Return the table of ``wisecrowd predict``: task, value and its 95% interval."""
        mean, variance = self._posterior(X, labels, ids)
        answers = NumberAnswers.normal(mean, variance)
        return {
            "task": np.arange(len(mean)) if ids is None else ids, "value": answers.values,
            "low": answers.low, "high": answers.high,
        }  # fmt: skip

    def worker_columns(self) -> dict[str, NDArray[Any]]:
        """Return bias, noise and slope of each worker."""
        return {**super().worker_columns(), "slope": self.slope_}


def _as_valid(valid: Any) -> tuple[Any, Floats] | None:
    if valid is None:
        return None
    features, values = as_features(valid[0]), np.asarray(valid[1], dtype=np.float64)
    if values.shape != (len(features),) or not np.isfinite(values).all():
        raise DataError(
            f"The validation set has {len(features)} rows and {values.size} numbers; give one "
            "finite number per row."
        )
    return features, values


def as_number_targets(y: Any, n_rows: int, tasks: Any = None) -> CrowdNumbers:
    """Return numbers with one task per row of the features, in that order.

    Parameters
    ----------
    y : CrowdNumbers, long frame, (task, worker, value), matrix, or (n_rows,) numbers
        A tasks × workers matrix has NaN where there is no number. One-dimensional numbers come
        from one worker.
    n_rows, tasks
        As in :func:`~wisecrowd.learning.training.rows_of_features.as_targets`.

    Examples
    --------
    >>> as_number_targets([0.5, 2.0, 1.5], 3)
    CrowdNumbers(3 tasks, 1 workers, 3 annotations)
    """
    require_given(y)
    if not isinstance(y, list) and not is_array(y):
        return by_rows(CrowdNumbers.coerce(y), n_rows, tasks)
    try:
        matrix = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"y cannot be read as numbers ({error}); give numbers.") from None
    if len(matrix) != n_rows:
        raise wrong_counts(n_rows, f"y has {len(matrix)} rows")
    if matrix.ndim == 1 and not np.isfinite(matrix).all():
        bad = int(np.argmin(np.isfinite(matrix)))
        raise DataError(f"Input y contains NaN or infinity in row {bad}: every row needs a number.")
    matrix = matrix.reshape(n_rows, -1)
    row, worker = np.nonzero(~np.isnan(matrix))
    ids = np.arange(n_rows) if tasks is None else as_ids(tasks, n_rows, TASK_ROWS)
    numbers = CrowdNumbers.from_arrays(
        row, worker, matrix[row, worker], tasks=range(n_rows), workers=range(matrix.shape[1])
    )
    return recoded(numbers, np.arange(n_rows), ids)


@dataclass(frozen=True, eq=False)
class NumberModel:
    r"""Workers, and the variance of the truth around a regression.

    Attributes
    ----------
    slope, bias, noise : (J,)
        :math:`s_j, b_j, \sigma_j`.
    variance : float
        :math:`\tau^2`.
    """

    slope: Floats
    bias: Floats
    noise: Floats
    variance: float

    def posterior(self, predicted: Floats, numbers: CrowdNumbers) -> tuple[Floats, Floats]:
        """Return (N,) means and variances of the truth, given f(x), (N,), and numbers.

        Examples
        --------
        >>> one = CrowdNumbers.from_arrays([0], [0], [3.0])
        >>> model = NumberModel(np.ones(1), np.ones(1), np.ones(1), 1.0)
        >>> model.posterior(np.zeros(1), one)
        (array([1.]), array([0.5]))
        """
        slope, noise = self.slope[numbers.worker], self.noise[numbers.worker]
        each = numbers.weights * slope / noise**2
        size = len(predicted)
        precision = 1 / self.variance + np.bincount(numbers.task, each * slope, size)
        total = predicted / self.variance + np.bincount(
            numbers.task, each * (numbers.value - self.bias[numbers.worker]), size
        )
        return total / precision, 1 / precision

    def log_density(self, predicted: Floats, numbers: CrowdNumbers) -> Floats:
        """Return (E,) log densities of numbers, each given f(x) alone."""
        slope = self.slope[numbers.worker]
        variance = slope**2 * self.variance + self.noise[numbers.worker] ** 2
        error = numbers.value - slope * predicted[numbers.task] - self.bias[numbers.worker]
        return np.asarray(-0.5 * (np.log(2 * np.pi * variance) + error**2 / variance))


def least_variance(numbers: CrowdNumbers) -> float:
    """Return the floor of variances, in the units of the numbers."""
    pooled = float(np.cov(numbers.value, aweights=numbers.weights, bias=True))
    return LEAST * pooled if pooled > 0 else LEAST


def fit_noise(predicted: Floats, numbers: CrowdNumbers, slope: Floats, bias: Floats) -> NumberModel:
    r"""Estimate :math:`\sigma_j` and :math:`\tau^2` by EM, for a regression with known workers.

    Parameters
    ----------
    predicted : (N,)
        :math:`f(x)`.
    numbers : CrowdNumbers
    slope, bias : (J,)
    """
    floor, weight, j = least_variance(numbers), numbers.weights, numbers.worker
    labelled = np.bincount(numbers.task, weight, len(predicted)) > 0
    count = np.bincount(j, weight, numbers.n_workers)
    error = numbers.value - slope[j] * predicted[numbers.task] - bias[j]
    start = max(float(np.average(error**2, weights=weight)) / 2, floor)
    square, variance = np.full(numbers.n_workers, start), start
    for _ in range(MAX_ITER):
        model = NumberModel(slope, bias, np.sqrt(square), variance)
        mean, spread = model.posterior(predicted, numbers)
        residual = (numbers.value - slope[j] * mean[numbers.task] - bias[j]) ** 2
        residual += slope[j] ** 2 * spread[numbers.task]
        total = np.bincount(j, weight * residual, numbers.n_workers)
        typical = 1 / np.mean(1 / square[count > 0])  # harmonic: good workers set the scale
        new = (total + 2 * PSEUDO_PAIRS * typical) / (count + 2 * PSEUDO_PAIRS)
        new, before = np.maximum(new, floor), (square, variance)
        gap = ((mean - predicted) ** 2 + spread)[labelled]
        square, variance = new, max(float(gap.mean()), floor)
        moved = np.abs(np.log(square / before[0])).max(), abs(np.log(variance / before[1]))
        if max(moved) < TOL:
            break
    return NumberModel(slope, bias, np.sqrt(square), variance)
