"""CrowdClassifier: the learner of classes, and what it finds about a collapsed classifier.

Nothing here needs torch; methods that train a network build on ``NeuralClassifier``.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import DataError, WisecrowdWarning
from wisecrowd.core.features import as_features, n_rows_of
from wisecrowd.core.findings import Finding
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import describe_ids, suggestion
from wisecrowd.core.result import choose_labels, confidence_of
from wisecrowd.core.saved_attributes import (
    Saved,
    SavedArray,
    SavedValue,
    is_finite,
)
from wisecrowd.core.types import Floats, Ints
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.confusion import accuracy_of, safe_log
from wisecrowd.kinds.classes.truth import as_gold
from wisecrowd.kinds.classes.worker_errors import accuracy_and_error, worker_evidence
from wisecrowd.learning.base import Outcome, TaskLearner, TrainingSet
from wisecrowd.learning.training.label_model import (
    fit_confusion,
    forecast,
    label_log_probas,
    softmax,
)
from wisecrowd.learning.training.output_calibration import Calibration
from wisecrowd.learning.training.rows_of_features import as_targets, recall

# Model files list attributes in this order.
FILED = (
    "calibration_", "classes_", "tasks_", "workers_", "labels_", "probas_", "confidence_",
    "labels_per_task_", "labels_per_worker_", "class_totals_", "class_prior_", "worker_accuracy_",
    "worker_accuracy_error_", "saw_gold_",
)  # fmt: skip
ALL = 0.99  # share of the tasks in one class at which a classifier has collapsed
FEWER = 0.9  # and the largest share of the vote for that class
RARE = 0.02, 10  # share and number of tasks for which a class must be the plurality
OVERRULED = 0.25  # share of plurality labels that may be changed without evidence
ERRORS = 2.0  # standard errors above zero that are evidence


def _are_exponents(value: Any) -> bool:
    numbers = isinstance(value, tuple) and len(value) == 3 and all(map(is_finite, value))
    return numbers and value[0] > 0 and value[1] > 0 and value[2] >= 0


@dataclass(frozen=True, eq=False)
class Training(TrainingSet):
    """Validated input of a fit to classes.

    Attributes
    ----------
    gold : (N,)
        Known classes, -1 where unknown.
    valid : (X, codes), optional
        Features and true classes.
    """

    labels: CrowdLabels
    gold: Ints
    valid: tuple[Any, Ints] | None = None


@dataclass(frozen=True, eq=False)
class Learned(Outcome):
    """Results of a fit to classes.

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
    """

    log_probas: Floats
    confusion: Floats | None = None
    probas: Floats | None = None
    calibration: Calibration | None = None
    gain: tuple[float, float] | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class CrowdClassifier(TaskLearner):
    """Base class of all methods that learn classes, with ``fit`` and ``predict``.

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
    """

    sklearn_type: ClassVar[str | None] = "classifier"
    without_labels: ClassVar[str] = (
        "learns nothing from them, and they get the classifier's own answer."
    )
    saves: ClassVar[dict[str, Saved]] = {
        "confusion_": SavedArray("J K K", "distribution"),
        "class_prior_": SavedArray("K", "distribution"),
        "calibration_": SavedValue(_are_exponents, "exponents and a dependence", optional=True),
        "ties_": SavedArray("N", "flag", optional=True),
    }
    _fit_call = "fit(X, labels)"

    # -------------------------------------------------------------------------------------- fit

    def _training(self, X: Any, y: Any, ids: Any, gold: Any, valid: Any, resume: Any) -> Training:
        labels = as_targets(y, n_rows_of(X), ids)
        if labels.n_annotations == 0:
            raise DataError("There are no annotations to fit; give labels for some rows of X.")
        if labels.n_tasks < 2:
            raise DataError("X has n_samples=1: one task is nothing to learn a classifier from.")
        codes = as_gold(gold, labels)
        known = np.full(labels.n_tasks, -1, np.int32) if codes is None else codes
        return Training(X, labels, known, self._as_valid(valid, labels), resume)

    def _publish_quietly(self, training: Training) -> None:
        """Fit to validated input, for methods made of others, which report the findings."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WisecrowdWarning)
            self._publish(training.X, training, self._fit(training))

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

    def _answer(self, training: Training, result: Learned) -> tuple[Finding, ...]:
        labels, gold = training.labels, training.gold
        confusion = result.confusion
        if confusion is None:
            confusion = fit_confusion(np.exp(result.log_probas), labels)
        self.confusion_ = confusion
        if result.calibration is not None:
            self.calibration_ = tuple(result.calibration)
        probas = result.probas
        if probas is None:  # the same as predict_proba
            probas = self._forecast(result.log_probas, labels)
        probas = self._calibrated(probas, result.log_probas, labels)
        known = np.flatnonzero(gold >= 0)
        probas[known] = np.eye(labels.n_classes)[gold[known]]
        codes, _ = choose_labels(probas, labels.class_totals)
        self.labels_, self.probas_ = labels.classes[codes], probas
        self.confidence_ = confidence_of(probas, codes)
        self.class_prior_ = probas.mean(axis=0)
        self.worker_accuracy_, self.worker_accuracy_error_ = accuracy_and_error(
            accuracy_of(confusion, self.class_prior_), worker_evidence(labels, probas)
        )
        self.saw_gold_ = bool(len(known))
        learned = vars(self)
        for name in ("confusion_", *(f"{name}_" for name in result.extra), *FILED):
            if name in learned:
                learned[name] = learned.pop(name)
        if not len(result.log_probas):  # of a learner inside, the findings are among those given
            return ()
        return tuple(collapse_findings(result.log_probas, codes, labels, result.gain))

    # ---------------------------------------------------------------------------------- predict

    def _log_probas(self, X: Any) -> Floats:
        raise TypeError(f"{type(self).__name__} must define _log_probas.")

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
        if not isinstance(y, Annotations) and np.ndim(y) == 1:
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
        known = self._by_known_workers(labels, "labels")
        label = class_codes[known.label].astype(np.int32)
        return replace(known, label=label, classes=self.classes_)


def collapse_findings(
    log_probas: Floats, codes: Ints, labels: CrowdLabels, gain: tuple[float, float] | None
) -> list[Finding]:
    """Return findings about the classifier and the labels of the training tasks.

    Parameters
    ----------
    log_probas : (N, K)
        The classifier's output on the training tasks.
    codes : (N,)
        Classes that the fit gives to these tasks.
    labels : CrowdLabels
    gain : (mean, standard error), optional
        What the features add to the log-likelihood of a held-out label.
    """
    row, vote = plurality(labels)
    if labels.n_classes < 2 or not len(row):
        return []
    votes = np.bincount(vote, minlength=labels.n_classes)
    predicted = np.bincount(log_probas.argmax(axis=1), minlength=labels.n_classes)
    found = _one_class(predicted, votes, labels) or _never_predicted(predicted, votes, labels)
    return [*found, *_overruled(codes[row] != vote, gain)]


def plurality(labels: CrowdLabels) -> tuple[Ints, Ints]:
    """Return the tasks with a single most frequent label, and that label.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays([0, 0, 0, 1, 1], list("abcab"), [1, 1, 0, 0, 1])
    >>> [part.tolist() for part in plurality(labels)]
    [[0], [1]]
    """
    weight = labels.weights
    cell = labels.task.astype(np.int64) * labels.n_classes + labels.label
    used, place = np.unique(cell, return_inverse=True)
    mass = np.bincount(place, weight, len(used))
    order = np.lexsort((mass, used // labels.n_classes))  # by task, the heaviest label last
    task, mass = (used // labels.n_classes)[order], mass[order]
    last = np.append(task[1:] != task[:-1], True)
    tied = np.zeros(len(task), dtype=bool)
    tied[1:] = (task[1:] == task[:-1]) & (mass[1:] <= mass[:-1] * (1 + 1e-9))
    keep = last & ~tied & (mass > 0)
    return task[keep], (used % labels.n_classes)[order][keep]


def _one_class(predicted: Ints, votes: Ints, labels: CrowdLabels) -> list[Finding]:
    top = int(predicted.argmax())
    share, by_vote = predicted[top] / predicted.sum(), votes[top] / votes.sum()
    if share < ALL or by_vote > FEWER:
        return []
    text = (
        f"The classifier has collapsed: it gives class {labels.classes[top]!r} to {share:.0%} of "
        f"the tasks, and the plurality vote to {by_vote:.0%}."
    )
    remedy = "Choose another method; a network may need a lower learning rate."
    affected = (labels.classes[top],)
    return [Finding("collapsed-classifier", "high", float(share), affected, text, remedy)]


def _never_predicted(predicted: Ints, votes: Ints, labels: CrowdLabels) -> list[Finding]:
    least = max(RARE[0] * votes.sum(), RARE[1])
    missing = np.flatnonzero((predicted == 0) & (votes >= least))
    if not len(missing):
        return []
    missing = missing[np.argsort(-votes[missing], kind="stable")]
    first, share = labels.classes[missing[0]], votes[missing[0]] / votes.sum()
    others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    text = (
        f"The classifier never predicts class {first!r}{others}, which is the plurality vote of "
        f"{share:.0%} of the tasks."
    )
    remedy = "Compare with another method; some can give rare classes more weight."
    affected = tuple(labels.classes[missing].tolist())
    return [Finding("class-never-predicted", "medium", float(share), affected, text, remedy)]


def _overruled(changed: NDArray[np.bool_], gain: tuple[float, float] | None) -> list[Finding]:
    share = float(changed.mean())
    if gain is None or share <= OVERRULED or gain[0] > ERRORS * gain[1]:
        return []
    text = (
        f"{share:.0%} of the labels differ from the plurality vote, and the features do not make "
        f"held-out labels more likely ({gain[0]:+.3f} ± {gain[1]:.3f} per label)."
    )
    remedy = "Trust the vote, or find better features."
    return [Finding("overruled-without-evidence", "high", share, (), text, remedy)]
