"""CrowdClassifier: the interface of all methods that learn from features and a crowd.

Nothing here needs torch; methods that train a network build on ``NeuralClassifier``.
"""

from __future__ import annotations

import importlib
import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.concurrency import exclusive_fit
from wisecrowd.core.estimator import Estimator
from wisecrowd.core.exceptions import DataError, WisecrowdWarning
from wisecrowd.core.features import as_features, as_targets, is_dataset, n_rows_of
from wisecrowd.core.findings import Finding, warn_of
from wisecrowd.core.gold import as_gold
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.messages.descriptions import describe_ids, suggestion
from wisecrowd.core.parameter_checks import as_generator
from wisecrowd.core.result import choose_labels, confidence_of
from wisecrowd.core.saved_attributes import (
    RECORDS,
    Saved,
    SavedArray,
    SavedValue,
    is_count,
    is_finite,
)
from wisecrowd.core.worker_errors import accuracy_and_error, worker_evidence
from wisecrowd.families.confusion import safe_log
from wisecrowd.families.worker_accuracy import accuracy_of
from wisecrowd.learning.training.collapse_checks import collapse_findings
from wisecrowd.learning.training.known_tasks import recall
from wisecrowd.learning.training.label_model import (
    fit_confusion,
    forecast,
    label_log_probas,
    softmax,
)
from wisecrowd.learning.training.output_calibration import Calibration

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]


def _are_exponents(value: Any) -> bool:
    numbers = isinstance(value, tuple) and len(value) == 3 and all(map(is_finite, value))
    return numbers and value[0] > 0 and value[1] > 0 and value[2] >= 0


@dataclass(frozen=True, eq=False)
class Training:
    """Validated input of a fit.

    Attributes
    ----------
    X : (N, ...) array or dataset
    labels : CrowdLabels
        Task ``i`` is row ``i`` of ``X``.
    gold : (N,)
        Known classes, -1 where unknown.
    valid : (X, codes), optional
        Features and true classes of the validation set that selects the epoch.
    """

    X: Any
    labels: CrowdLabels
    gold: Ints
    valid: tuple[Any, Ints] | None = None
    resume: bool | None = False


@dataclass(frozen=True, eq=False)
class Learned:
    """Results of a fit.

    Attributes
    ----------
    log_probas : (N, K)
        The classifier's output on the training tasks.
    confusion : (J, K, K), optional
        Confusion matrices of the method; estimated from the classifier's output if missing.
    probas : (N, K), optional
        Posterior of the training tasks before calibration, which ``_forecast`` must reproduce,
        except for tasks that ``remember`` identifies. If missing, ``_forecast`` computes it.
    calibration : Calibration, optional
        Exponents of the classifier and of the labels; None leaves posteriors unchanged.
    gain : (mean, standard error), optional
        What the features add to the log-likelihood of a held-out label.
    extra, private : dict
        Further results, published with a trailing underscore, and parts that predictions need,
        such as the network, published with a leading one.
    """

    log_probas: Floats
    confusion: Floats | None = None
    probas: Floats | None = None
    calibration: Calibration | None = None
    gain: tuple[float, float] | None = None
    n_iter: int = 1
    converged: bool = True
    history: tuple[dict[str, float], ...] = ()
    findings: tuple[Finding, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    private: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False, repr=False, kw_only=True)
class CrowdClassifier(Estimator):
    """Base class of all end-to-end methods, with ``fit`` and ``predict``.

    A method is a dataclass whose fields are its parameters, with ``_fit(training) -> Learned`` and
    ``_log_probas(X)``, the classifier's output on new features.

    Attributes
    ----------
    classes_, tasks_, workers_ : arrays of ids
    labels_, probas_, confidence_ : (N,), (N, K), (N,)
        Posterior of the training tasks, from features and labels.
    confusion_ : (J, K, K)
        ``confusion_[j, k, l]``: probability of label ``l`` by worker ``j`` on class ``k``.
    worker_accuracy_, worker_accuracy_error_ : (J,)
    class_prior_ : (K,)
        The mean of ``probas_``.
    calibration_ : (float, float, float), if the posteriors are calibrated
        Exponents of the classifier's output without and with labels, and dependence of the labels
        of one task.
    n_iter_, converged_, history_
    findings_ : tuple of Finding, what casts doubt on the result
    warnings_ : tuple of str, the texts of the findings
    """

    random_state: int | None = 0

    uses_unlabelled: ClassVar[bool] = False
    takes_sparse: ClassVar[bool] = False  # else sparse features become dense, if they fit
    streams: ClassVar[bool] = False  # whether the array of a mapped file is read in batches
    saves: ClassVar[dict[str, Saved]] = {
        "confusion_": SavedArray("J K K", "distribution"),
        "class_prior_": SavedArray("K", "distribution"),
        "calibration_": SavedValue(_are_exponents, "exponents and a dependence", optional=True),
        "history_": RECORDS,
        "ties_": SavedArray("N", "flag", optional=True),
        "n_features_in_": SavedValue(is_count, "a count", optional=True),
        "feature_names_in_": SavedArray("features", "id", optional=True),
    }
    _fit_call = "fit(X, labels)"

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
        """Fit to features and annotations.

        Parameters
        ----------
        X : (N, d) or (N, channels, height, width) array, frame of numbers, or torch Dataset
            A sparse matrix is made dense if it fits into memory; Raykar takes it as it is.
        y : CrowdLabels, long frame, tasks × workers matrix, or (N,) labels of one worker
        tasks : (N,) ids, optional
            Task of each row of ``X``. Without it, tasks must be row numbers.
        gold : mapping from task to class, (task, label) frame, or (N,) array with None
            Known classes, which the result keeps and the classifier learns from.
        valid : (X, y) of true classes, optional
            Validation set that selects the epoch.
        resume : bool, optional
            Resume from the checkpoint of an interrupted fit. None refuses to overwrite one.
        """
        self._validate_parameters()
        features = as_features(X, sparse=self.takes_sparse, mapped=self.streams)
        labels = as_targets(y, n_rows_of(features), tasks)
        if labels.n_annotations == 0:
            raise DataError("There are no annotations to fit; give labels for some rows of X.")
        if labels.n_tasks < 2:
            raise DataError("X has n_samples=1: one task is nothing to learn a classifier from.")
        codes = as_gold(gold, labels)
        known = np.full(labels.n_tasks, -1, np.int32) if codes is None else codes
        training = Training(features, labels, known, self._as_valid(valid, labels), resume)
        with exclusive_fit(self):
            # A new object sees nothing of an earlier fit, and after an error self is unchanged.
            fresh = type(self)(**self.get_params(deep=False))
            fresh._publish(X, training, fresh._fit(training))
            self._forget()
            vars(self).update(vars(fresh))
        return self

    def _publish_quietly(self, training: Training) -> None:
        """Fit to validated input, for methods made of others, which report the findings."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WisecrowdWarning)
            self._publish(training.X, training, self._fit(training))

    def _validate_parameters(self) -> None:
        """Check the shared parameters; subclasses check their own and call super."""
        as_generator(self.random_state)

    def _fit(self, training: Training) -> Learned:
        raise TypeError(f"{type(self).__name__} must define _fit.")

    def _as_valid(self, valid: Any, labels: CrowdLabels) -> tuple[Any, Ints] | None:
        if valid is None:
            return None
        X, y = valid
        features = as_features(X, mapped=self.streams)
        codes = lookup(np.asarray(y), labels.classes)
        if len(codes) != len(features):
            raise DataError(
                f"The validation set has {len(features)} rows and {len(codes)} classes; give one "
                "class per row."
            )
        if (codes < 0).any():
            strange = np.asarray(y)[codes < 0].tolist()[0]
            raise DataError(
                f"The validation set has the class {strange!r}, which is not among the classes "
                f"({describe_ids(labels.classes)})."
            )
        return features, codes

    def _publish(self, X: Any, training: Training, result: Learned) -> None:
        labels, gold = training.labels, training.gold
        confusion = result.confusion
        if confusion is None:
            confusion = fit_confusion(np.exp(result.log_probas), labels)
        self.confusion_ = confusion
        for name, value in result.extra.items():
            setattr(self, name + "_", value)
        for name, value in result.private.items():
            setattr(self, "_" + name, value)
        if result.calibration is not None:
            self.calibration_ = tuple(result.calibration)
        probas = result.probas
        if probas is None:  # the same as predict_proba
            probas = self._forecast(result.log_probas, labels)
        probas = self._calibrated(probas, result.log_probas, labels)
        known = np.flatnonzero(gold >= 0)
        probas[known] = np.eye(labels.n_classes)[gold[known]]
        codes, _ = choose_labels(probas, labels.class_totals)
        self.classes_, self.tasks_, self.workers_ = labels.classes, labels.tasks, labels.workers
        self.labels_, self.probas_ = labels.classes[codes], probas
        self.confidence_ = confidence_of(probas, codes)
        self.labels_per_task_ = labels.labels_per_task
        self.labels_per_worker_ = labels.labels_per_worker
        self.class_totals_ = labels.class_totals
        self._frame_library = labels.frame_library
        self.class_prior_ = probas.mean(axis=0)
        self.worker_accuracy_, self.worker_accuracy_error_ = accuracy_and_error(
            accuracy_of(confusion, self.class_prior_), worker_evidence(labels, probas)
        )
        self.saw_gold_ = bool(len(known))
        self.n_iter_, self.converged_ = result.n_iter, result.converged
        self.history_ = result.history
        collapse: list[Finding] = []
        if len(result.log_probas):  # of a learner inside, the findings are among those given
            collapse = collapse_findings(result.log_probas, codes, labels, result.gain)
        self.findings_ = (*_unlabelled_rows(self, labels), *result.findings, *collapse)
        self.warnings_ = tuple(map(str, self.findings_))
        if not is_dataset(X):
            self.n_features_in_ = int(training.X.shape[1])
            if hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns):
                self.feature_names_in_ = np.asarray(list(X.columns), dtype=object)
        warn_of(self.findings_, stacklevel=3)

    # ---------------------------------------------------------------------------------- predict

    def _log_probas(self, X: Any) -> Floats:
        raise TypeError(f"{type(self).__name__} must define _log_probas.")

    def _checked(self, X: Any) -> Any:
        self._require_fitted()
        n_features = vars(self).get("n_features_in_")
        return as_features(
            X, n_features=n_features, owner=type(self).__name__, sparse=self.takes_sparse,
            mapped=self.streams,
        )  # fmt: skip

    def predict_proba(self, X: Any, labels: Any = None, *, tasks: Any = None) -> Floats:
        """Return (n, K) class probabilities of new tasks.

        Parameters
        ----------
        X : features
        labels : annotations of these tasks by workers of the fit, optional
            With labels, the result is the posterior from features and labels. On the training
            tasks it equals ``probas_``, except for tasks with gold.
        tasks : (n,) ids, optional
            Task of each row, as in ``fit``.
        """
        features = self._checked(X)
        log_probas = self._log_probas(features)
        if labels is None:
            return softmax(vars(self).get("calibration_", (1.0,))[0] * log_probas)
        known = self._known(as_targets(labels, n_rows_of(features), tasks))
        probas = self._calibrated(self._posterior(features, known), log_probas, known)
        return recall(self, probas, log_probas, known) if "task_key_" in vars(self) else probas

    def _calibrated(self, probas: Floats, log_probas: Floats, labels: CrowdLabels) -> Floats:
        """Return the (n, K) posterior after calibration, if the fit has calibrated itself."""
        if "calibration_" not in vars(self):
            return probas
        return Calibration(*self.calibration_).apply(probas, self._log_prior(log_probas), labels)

    def _posterior(self, features: Any, labels: CrowdLabels) -> Floats:
        """Return the (n, K) posterior from features and labels in the vocabularies of the fit."""
        return self._forecast(self._log_probas(features), labels)

    def _forecast(self, log_probas: Floats, labels: CrowdLabels) -> Floats:
        """Return the (n, K) posterior from the classifier's output and labels, not calibrated."""
        return forecast(self._log_prior(log_probas), labels, self.confusion_)

    def _log_prior(self, log_probas: Floats) -> Floats:
        """Return the (n, K) log-prior of the classes, made from the classifier's output."""
        return log_probas

    def predict(self, X: Any, labels: Any = None, *, tasks: Any = None) -> NDArray[Any]:
        """Return the most probable class of new tasks; see :meth:`predict_proba`."""
        probas = self.predict_proba(X, labels, tasks=tasks)
        return np.asarray(self.classes_[choose_labels(probas, self.class_totals_)[0]])

    def score(self, X: Any, y: Any, *, tasks: Any = None) -> float:
        """Return the accuracy on true classes or, on annotations, their mean log-likelihood.

        Parameters
        ----------
        X : features
        y : (n,) true classes, or annotations as in ``fit``
            With annotations, a scikit-learn search selects by the likelihood of held-out labels and
            needs no gold.
        """
        features = self._checked(X)
        if not isinstance(y, CrowdLabels) and np.ndim(y) == 1:
            n_rows = n_rows_of(features)
            if len(y) != n_rows:
                raise DataError(
                    f"X has {n_rows} rows and y has {len(y)} classes; give one per row."
                )
            return float(np.mean(self.predict(X) == np.asarray(y)))
        known = self._known(as_targets(y, n_rows_of(features), tasks))
        values = self._label_log_probas(features, known)
        weight = np.ones(len(values)) if known.weight is None else known.weight
        return float(weight @ values / max(weight.sum(), 1e-300))

    def _label_log_probas(self, features: Any, labels: CrowdLabels) -> Floats:
        """Return (E,) log-probabilities of labels by workers of the fit, given the features."""
        prior = self._log_prior(self._log_probas(features))
        return label_log_probas(prior, labels, safe_log(self.confusion_))

    def _known(self, labels: CrowdLabels) -> CrowdLabels:
        """Return labels in the vocabularies of the fit, without those of unknown workers."""
        class_codes = lookup(labels.classes, self.classes_)
        unknown = (class_codes < 0) & (labels.class_totals > 0)
        if unknown.any():
            value = labels.classes[unknown].tolist()[0]
            raise DataError(
                f"Label {value!r}{suggestion(value, self.classes_)} was not among the classes of "
                f"the fit ({describe_ids(self.classes_)}); correct it, or fit again with it."
            )
        worker_codes = lookup(labels.workers, self.workers_)
        strange = worker_codes[labels.worker] < 0
        if strange.any():
            first = labels.workers[labels.worker[strange]].tolist()[0]
            warnings.warn(
                f"{int(strange.sum())} labels come from workers that were not in the fit, such as "
                f"{first!r}{suggestion(first, self.workers_)}, and do not count.",
                WisecrowdWarning,
                stacklevel=4,
            )
            labels = labels.select_annotations(~strange)
        return CrowdLabels(
            labels.task, worker_codes[labels.worker], class_codes[labels.label],
            labels.tasks, self.workers_, self.classes_, weight=labels.weight,
        )  # fmt: skip

    # -------------------------------------------------------------------- tables, files, manners

    def save(self, path: Any) -> None:
        """Save the fitted method to a folder; ``wisecrowd.load`` reads it."""
        self._require_fitted()
        importlib.import_module("wisecrowd.storage.saved_methods").save(self, path)

    def __sklearn_tags__(self) -> Any:
        """Return the estimator tags, for scikit-learn."""
        tags = importlib.import_module("sklearn.utils")
        return tags.Tags(
            estimator_type="classifier",
            target_tags=tags.TargetTags(required=True),
            classifier_tags=tags.ClassifierTags(),
            input_tags=tags.InputTags(sparse=True),
        )


def _unlabelled_rows(method: CrowdClassifier, labels: CrowdLabels) -> list[Finding]:
    bare = labels.labels_per_task == 0
    if not bare.any() or method.uses_unlabelled:
        return []
    text = (
        f"{int(bare.sum())} of {labels.n_tasks} rows of X have no labels; {type(method).__name__} "
        "learns nothing from them, and they get the classifier's own answer."
    )
    ids = tuple(labels.tasks[bare].tolist())
    return [Finding("tasks-without-labels", "medium", float(bare.mean()), ids, text, "")]
