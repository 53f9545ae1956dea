"""CrowdRegressor: the interface of methods that learn numbers from features and a crowd.

Nothing here needs torch.
"""

from __future__ import annotations

import importlib
import warnings
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.concurrency import exclusive_fit
from wisecrowd.core.estimator import Estimator
from wisecrowd.core.exceptions import DataError, WisecrowdWarning
from wisecrowd.core.features import as_features, as_number_targets, is_dataset
from wisecrowd.core.findings import Finding, warn_of
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.number_answers import NumberAnswers, normal_interval
from wisecrowd.core.number_prior import known_numbers
from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.core.parameter_checks import as_generator, check_number
from wisecrowd.core.saved_attributes import (
    RECORDS,
    Saved,
    SavedArray,
    SavedValue,
    is_count,
    is_finite,
)
from wisecrowd.learning.training.number_model import NumberModel

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NumberTraining:
    """Validated input of a fit.

    Attributes
    ----------
    X : (N, ...) array or dataset
    numbers : CrowdNumbers
        Task ``i`` is row ``i`` of ``X``.
    gold : (N,)
        Known numbers, NaN where unknown.
    valid : (X, values), optional
        Features and true numbers of the validation set that selects the epoch.
    """

    X: Any
    numbers: CrowdNumbers
    gold: Floats
    valid: tuple[Any, Floats] | None = None
    resume: bool | None = False


@dataclass(frozen=True, eq=False)
class LearnedNumbers:
    """Results of a fit.

    Attributes
    ----------
    predicted : (N,)
        The regression's output on the training tasks.
    model : NumberModel
        The workers, and the variance of the truth around the regression.
    extra, private : dict
        Further results, published with a trailing underscore, and parts that predictions need,
        such as the network, published with a leading one.
    """

    predicted: Floats
    model: NumberModel
    n_iter: int = 1
    converged: bool = True
    history: tuple[dict[str, float], ...] = ()
    findings: tuple[Finding, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    private: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False, repr=False, kw_only=True)
class CrowdRegressor(Estimator):
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
    n_iter_, converged_, history_
    findings_ : tuple of Finding, what casts doubt on the result
    warnings_ : tuple of str, the texts of the findings
    """

    random_state: int | None = 0

    takes: ClassVar[str] = "numbers"
    rows_are: ClassVar[str] = "tasks"
    streams: ClassVar[bool] = False
    saves: ClassVar[dict[str, Saved]] = {
        "slope_": SavedArray("J"),
        "bias_": SavedArray("J"),
        "noise_": SavedArray("J", "positive"),
        "residual_variance_": SavedValue(
            lambda value: is_finite(value) and value > 0, "a number above zero"
        ),
        "history_": RECORDS,
        "n_features_in_": SavedValue(is_count, "a count", optional=True),
        "feature_names_in_": SavedArray("features", "id", optional=True),
    }
    _fit_call = "fit(X, numbers)"

    # -------------------------------------------------------------------------------------- fit

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        tasks: Any = None,
        gold: Any = None,
        valid: Any = None,
        resume: bool | None = False,
    ) -> Self:
        """Fit to features and numbers.

        Parameters
        ----------
        X : (N, d) or (N, channels, height, width) array, frame of numbers, or torch Dataset
        y : CrowdNumbers, long frame, tasks × workers matrix with NaN, or (N,) numbers
            One-dimensional numbers come from one worker.
        tasks : (N,) ids, optional
            Task of each row of ``X``. Without it, tasks must be row numbers.
        gold : mapping from task to number, (task, value) frame, or (N,) array with NaN
            Known numbers, which the result keeps and the regression learns from.
        valid : (X, y) of true numbers, optional
            Validation set that selects the epoch.
        resume : bool, optional
            Resume from the checkpoint of an interrupted fit. None refuses to overwrite one.
        """
        self._validate_parameters()
        features = as_features(X, mapped=self.streams)
        numbers = as_number_targets(y, len(features), tasks)
        if numbers.n_annotations == 0:
            raise DataError("There are no annotations to fit; give numbers for some rows of X.")
        if len(features) < 2:
            raise DataError("X has n_samples=1: one task is nothing to learn a regression from.")
        known = np.full(numbers.n_tasks, np.nan)
        if gold is not None:
            known = known_numbers(gold, numbers, "gold")
        training = NumberTraining(features, numbers, known, _as_valid(valid), resume)
        with exclusive_fit(self):
            # A new object sees nothing of an earlier fit, and after an error self is unchanged.
            fresh = type(self)(**self.get_params(deep=False))
            fresh._publish(X, training, fresh._fit(training))
            self._forget()
            vars(self).update(vars(fresh))
        return self

    def _validate_parameters(self) -> None:
        """Check the shared parameters; subclasses check their own and call super."""
        as_generator(self.random_state)

    def _fit(self, training: NumberTraining) -> LearnedNumbers:
        raise TypeError(f"{type(self).__name__} must define _fit.")

    def _publish(self, X: Any, training: NumberTraining, result: LearnedNumbers) -> None:
        numbers, model = training.numbers, result.model
        for name, value in numbers.attributes().items():
            setattr(self, name, value)
        for name, value in result.extra.items():
            setattr(self, name + "_", value)
        for name, value in result.private.items():
            setattr(self, "_" + name, value)
        self.slope_, self.bias_, self.noise_ = model.slope, model.bias, model.noise
        self.residual_variance_ = model.variance
        mean, variance = model.posterior(result.predicted, numbers)
        known = ~np.isnan(training.gold)
        mean, variance = np.where(known, training.gold, mean), np.where(known, 0.0, variance)
        for name, value in NumberAnswers.normal(mean, variance).attributes({}).items():
            setattr(self, name, value)
        self._frame_library = numbers.frame_library
        self.n_iter_, self.converged_ = result.n_iter, result.converged
        self.history_ = result.history
        self.findings_ = (*_unlabelled_rows(self, numbers), *result.findings)
        self.warnings_ = tuple(map(str, self.findings_))
        if not is_dataset(X):
            self.n_features_in_ = int(training.X.shape[1])
            if hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns):
                self.feature_names_in_ = np.asarray(list(X.columns), dtype=object)
        warn_of(self.findings_, stacklevel=3)

    # ---------------------------------------------------------------------------------- predict

    def _numbers(self, X: Any) -> Floats:
        raise TypeError(f"{type(self).__name__} must define _numbers.")

    def _checked(self, X: Any) -> Any:
        self._require_fitted()
        n_features = vars(self).get("n_features_in_")
        return as_features(X, n_features=n_features, owner=type(self).__name__, mapped=self.streams)

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
        codes = lookup(numbers.workers, self.workers_)
        strange = codes[numbers.worker] < 0
        if strange.any():
            first = numbers.workers[numbers.worker[strange]].tolist()[0]
            warnings.warn(
                f"{int(strange.sum())} numbers come from workers that were not in the fit, such as "
                f"{first!r}{suggestion(first, self.workers_)}, and do not count.",
                WisecrowdWarning,
                stacklevel=4,
            )
            numbers = numbers.select_annotations(~strange)
        worker = codes[numbers.worker].astype(np.int32)
        return replace(numbers, worker=worker, workers=self.workers_, worker_columns={})

    # ----------------------------------------------------------------------------- tables, files

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

    def save(self, path: Any) -> None:
        """Save the fitted method to a folder; ``wisecrowd.load`` reads it."""
        self._require_fitted()
        importlib.import_module("wisecrowd.storage.saved_methods").save(self, path)

    def __sklearn_tags__(self) -> Any:
        """Return the estimator tags, for scikit-learn."""
        tags = importlib.import_module("sklearn.utils")
        return tags.Tags(
            estimator_type="regressor",
            target_tags=tags.TargetTags(required=True),
            regressor_tags=tags.RegressorTags(),
            input_tags=tags.InputTags(sparse=True),
        )


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


def _unlabelled_rows(method: CrowdRegressor, numbers: CrowdNumbers) -> list[Finding]:
    bare = numbers.labels_per_task == 0
    if not bare.any():
        return []
    text = (
        f"{int(bare.sum())} of {numbers.n_tasks} rows of X have no labels; {type(method).__name__} "
        "learns nothing from them, and they get the regression's own answer."
    )
    ids = tuple(numbers.tasks[bare].tolist())
    return [Finding("tasks-without-labels", "medium", float(bare.mean()), ids, text, "")]
