"""Aggregator: the one public face of all inference methods."""

from __future__ import annotations

import copy
import importlib
import inspect
import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.concurrency import exclusive_fit
from wisecrowd.core.estimator import Estimator
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdWarning
from wisecrowd.core.findings import Finding, warn_of
from wisecrowd.core.footprint import Footprint, bytes_needed
from wisecrowd.core.gold import as_gold, as_truth
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.labels import CrowdLabels, describe_ids
from wisecrowd.core.memory import require_memory
from wisecrowd.core.parameters import (
    MOST_ITERATIONS,
    MOST_STARTS,
    as_generator,
    check_integer,
    check_number,
)
from wisecrowd.core.problem import Problem
from wisecrowd.core.registry import kebab_case
from wisecrowd.core.result import FitResult, choose_labels, confidence_of
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.spelling import spelled
from wisecrowd.core.task_prior import TaskPrior, as_number_table, as_task_prior
from wisecrowd.core.validation import as_crowd_labels, suggestion

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Tags:
    """What a method promises; the common checks hold it to that.

    Attributes
    ----------
    monotone : bool
        Its objective never decreases.
    inductive : bool
        ``predict_proba`` on the training labels repeats the fit.
    predicts : bool
        ``predict_proba`` works on new tasks although it does not repeat the fit; implied by
        ``inductive``.
    likelihood : bool
        ``score`` works without truth.
    confusion : bool
        It has ``confusion_``.
    binary : bool
        It handles two classes only (OneVsRest makes more of it).
    exact_replication : bool
        An integer weight is the same as repeating the annotation.
    pooled : bool
        Workers inform each other beyond the tasks they share, so that a crowd elsewhere matters.
    stochastic : bool
        It draws random numbers even from one start, so that renaming tasks changes the draws.
    """

    monotone: bool = False
    inductive: bool = True
    predicts: bool = False
    likelihood: bool = False
    confusion: bool = False
    binary: bool = False
    exact_replication: bool = True
    stochastic: bool = False
    pooled: bool = False


class Aggregator(Estimator):
    """Base of all inference methods: ``fit`` and ``predict`` are written once, here.

    A method is a dataclass whose fields are its parameters, with ``_fit(problem) -> FitResult``.
    Inductive methods have ``_predict(problem)``, which may use fitted attributes only. A fit sets
    no attribute before its end: :meth:`fit` publishes the result of ``_fit`` last.

    Attributes
    ----------
    tasks_, workers_, classes_ : arrays of ids
    labels_ : (n_tasks,) the most probable class of each task
    probas_ : (n_tasks, n_classes) posterior
    ties_ : (n_tasks,) bool, whether the label was a tie
    worker_accuracy_, worker_accuracy_error_ : (n_workers,) and its standard error
    class_prior_, confusion_ : where the model has them
    n_iter_, converged_, history_
    findings_ : tuple of Finding, what casts doubt on the result
    warnings_ : tuple of str, the texts of the findings
    """

    promises: ClassVar[Tags] = Tags()
    saves: ClassVar[dict[str, Saved]] = {"ties_": SavedArray("N", "flag")}
    footprint: ClassVar[Footprint | None] = None

    def tags(self) -> Tags:
        """Return what this method promises with its parameters; the common checks rely on it."""
        return self.promises

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn, which alone calls this, what kind of estimator this is."""
        tags = importlib.import_module("sklearn.utils")
        return tags.Tags(
            estimator_type=None,
            target_tags=tags.TargetTags(required=False),
            input_tags=tags.InputTags(),
        )

    def _validate_parameters(self) -> None:
        """Check the parameters all methods share; subclasses check their own and call super."""
        params = self.get_params(deep=False)
        for name, most in (("max_iter", MOST_ITERATIONS), ("n_init", MOST_STARTS)):
            if name in params:
                check_integer(name, params[name], 1, most)
        if "tol" in params:
            check_number("tol", params["tol"], 0.0)
        if "random_state" in params:
            as_generator(params["random_state"])

    # -------------------------------------------------------------------------------------- fit

    def fit(
        self,
        labels: Any,
        y: Any = None,
        *,
        gold: Any = None,
        task_prior: Any = None,
        init: Any = None,
    ) -> Self:
        """Fit to annotations.

        Parameters
        ----------
        labels : CrowdLabels, long frame, (task, worker, label) or tasks × workers matrix
        y : ignored
            Present because scikit-learn's searches pass the truth here, for ``score``.
        gold : mapping from task to class, (task, label) frame, or (n_tasks,) array with None
            Known classes; these tasks keep them.
        task_prior : (n_classes,) or (n_tasks, n_classes), array or sparse
            Probabilities (or their logarithms) of the classes before any label is seen.
        init : (n_tasks, n_classes) probabilities, a fitted method, or a method to fit first
            Where to start; the default is the method's own choice, the soft vote as a rule.
        """
        return self._fit_and_publish(labels, gold, task_prior, init, checks=True)

    def _fit_without_checks(self, labels: Any) -> Self:
        """Fit to annotations as a step of a larger analysis that reports findings of its own."""
        return self._fit_and_publish(labels, None, None, None, checks=False)

    def _fit_and_publish(
        self, labels: Any, gold: Any, task_prior: Any, init: Any, *, checks: bool
    ) -> Self:
        self._validate_parameters()
        labels = as_crowd_labels(labels)
        if self.tags().binary and labels.n_classes > 2:
            raise DataError(
                f"{type(self).__name__} handles two classes and there are {labels.n_classes}; "
                f"wrap it: {_one_vs_rest(type(self).__name__)}."
            )
        if labels.n_annotations == 0:
            raise DataError("There are no annotations to fit; select tasks that have labels.")
        require_memory(
            self.memory_needed(labels),
            f"{type(self).__name__} with {labels.n_tasks} tasks, {labels.n_workers} workers and "
            f"{labels.n_classes} classes would",
            "use one-coin or majority-vote, which need a few bytes per annotation, or fewer tasks",
        )
        gold_codes = as_gold(gold, labels)
        prior = as_task_prior(task_prior, gold_codes, labels)
        problem = self._problem(labels, prior, start=self._as_start(init, labels))
        with exclusive_fit(self):
            result = self._fit(problem)
            if checks:
                found = self._findings(problem, result, gold_codes)
                result = replace(result, findings=(*result.findings, *found))
            self._publish(labels, result)
        warn_of(self.findings_, stacklevel=3)
        return self

    def memory_needed(self, labels: Any) -> int:
        """Return about how many bytes a fit to these labels takes, beyond the labels themselves.

        For default parameters. 0 for methods without a ``footprint``, which check inside the fit
        what they are about to make. ``fit`` refuses what the machine does not have.

        Examples
        --------
        >>> from wisecrowd.aggregation import DawidSkene
        >>> labels = CrowdLabels.from_matrix(np.zeros((1000, 5), dtype=int), classes=range(50))
        >>> 1e6 < DawidSkene().memory_needed(labels) < 1e7
        True
        """
        if self.footprint is None:
            return 0
        max_pairs = getattr(self, "max_pairs", None)
        return bytes_needed(self.footprint, as_crowd_labels(labels), max_pairs=max_pairs)

    def _problem(
        self, labels: CrowdLabels, prior: TaskPrior, start: Floats | None = None
    ) -> Problem:
        """Return what ``_fit`` and ``_predict`` read; the labels decide about the engine."""
        rng = as_generator(getattr(self, "random_state", None))
        engine = importlib.import_module("wisecrowd.engines.memory").MemoryEngine()
        return Problem(labels, prior, engine, start, rng)

    def _fit(self, problem: Problem) -> FitResult:
        raise TypeError(f"{type(self).__name__} must define _fit.")

    def _findings(self, problem: Problem, result: FitResult, gold: Any) -> list[Finding]:
        """Return what the checks of every fit find; a method may override it and add its own."""
        checks = importlib.import_module("wisecrowd.checks.fit_checks")
        known = None if gold is None else gold >= 0
        found: list[Finding] = checks.findings_of(
            problem.data, result, known, labels_only=not problem.prior.given
        )
        usual = inspect.signature(type(self).__init__).parameters.get("max_iter")
        # A lower max_iter than the default means early stopping on purpose.
        if not result.converged and usual is not None and self.max_iter >= usual.default:
            found.append(checks.not_converged(result.n_iter, type(self).__name__))
        return found

    def _as_start(self, init: Any, labels: CrowdLabels) -> Floats | None:
        if init is None:
            return None
        if isinstance(init, Aggregator):
            init = _posterior_of(init, labels)
        start = as_number_table(init.toarray() if hasattr(init, "toarray") else init, "init")
        shape = (labels.n_tasks, labels.n_classes)
        if start.shape != shape:
            raise DataError(
                f"init has shape {start.shape}; give probabilities of shape {shape}: one row per "
                "task, one column per class."
            )
        bad = ~np.isfinite(start).all(axis=1) | (start < 0).any(axis=1) | ~start.any(axis=1)
        if bad.any():
            raise DataError(
                "init must be finite, not negative, and not all zero in any row; correct row "
                f"{int(np.argmax(bad)) + 1}."
            )
        return np.asarray(start / start.sum(axis=1, keepdims=True))

    def _publish(self, labels: CrowdLabels, result: FitResult) -> None:
        self._forget()
        codes, ties = choose_labels(result.probas, labels.class_totals)
        self.tasks_, self.workers_, self.classes_ = labels.tasks, labels.workers, labels.classes
        self.labels_ = labels.classes[codes]
        self.probas_ = result.probas
        self.confidence_ = confidence_of(result.probas, codes)
        self.ties_ = ties
        self.labels_per_task_ = labels.labels_per_task
        self.labels_per_worker_ = labels.labels_per_worker
        self.class_totals_ = labels.class_totals
        self.worker_accuracy_ = result.worker_accuracy
        self.worker_accuracy_error_ = result.worker_accuracy_error
        self.n_iter_, self.converged_ = result.n_iter, result.converged
        self.history_, self.findings_ = result.history, result.findings
        self.warnings_ = tuple(map(str, result.findings))
        for name in ("class_prior", "confusion"):
            if getattr(result, name) is not None:
                setattr(self, name + "_", getattr(result, name))
        for name, value in result.extra.items():
            setattr(self, name + "_", value)
        self._frame_library = labels.frame_library

    # ---------------------------------------------------------------------------------- predict

    def predict_proba(self, labels: Any, *, task_prior: Any = None, gold: Any = None) -> Any:
        """Return the posterior (n_tasks, n_classes) of new tasks labelled by known workers.

        Workers that the fit has not seen count as a worker about whom nothing is known.
        """
        self._require_fitted()
        if not (self.tags().inductive or self.tags().predicts):
            raise DataError(
                f"{type(self).__name__} has no posterior for new tasks; fit on all labels instead."
            )
        known = self._recode(as_crowd_labels(labels))
        return self._predict(
            self._problem(known, as_task_prior(task_prior, as_gold(gold, known), known))
        )

    def predict(self, labels: Any, *, task_prior: Any = None, gold: Any = None) -> NDArray[Any]:
        """Return the most probable class of each new task; see :meth:`predict_proba`."""
        probas = self.predict_proba(labels, task_prior=task_prior, gold=gold)
        return np.asarray(self.classes_[choose_labels(probas, self.class_totals_)[0]])

    def _predict(self, problem: Problem) -> Any:
        raise TypeError(f"{type(self).__name__} must define _predict or set inductive=False.")

    def fit_predict(self, labels: Any, y: Any = None, **fit_options: Any) -> Any:
        """Fit and return the labels: a pandas Series by task if pandas came in, else an array."""
        self.fit(labels, y, **fit_options)
        if self._frame_library == "pandas":
            pandas = importlib.import_module("pandas")
            return pandas.Series(
                self.labels_, index=pandas.Index(self.tasks_, name="task"), name="label"
            )
        return self.labels_

    def score(self, labels: Any, truth: Any = None) -> float:
        """Return the accuracy on ``truth`` or, without it, the log-likelihood per annotation.

        Truth is a mapping from task to class, a (task, label) frame, or one class per task; tasks
        without a truth do not count.
        """
        self._require_fitted()
        known = self._recode(as_crowd_labels(labels))
        if truth is None:
            if not self.tags().likelihood:
                raise ParameterError(
                    f"{type(self).__name__} has no likelihood to score without truth; give truth."
                )
            problem = self._problem(known, TaskPrior(np.zeros((1, known.n_classes))))
            return self._log_likelihood(problem) / max(_total_weight(known), 1e-300)
        codes = as_truth(truth, known)
        if self.tags().inductive:
            probas = self._predict(self._problem(known, as_task_prior(None, None, known)))
        else:
            probas = self._known_posterior(known)
        chosen, _ = choose_labels(probas, self.class_totals_)
        return float(np.mean(chosen[codes >= 0] == codes[codes >= 0]))

    def _known_posterior(self, labels: CrowdLabels) -> Any:
        rows = lookup(labels.tasks, self.tasks_)
        if (rows < 0).any():
            raise DataError(
                f"Task {labels.tasks[int(np.argmax(rows < 0))]!r} was not in the fit, and "
                f"{type(self).__name__} cannot predict new tasks."
            )
        return self.probas_[rows]

    def _log_likelihood(self, problem: Problem) -> float:
        raise TypeError(f"{type(self).__name__} must define _log_likelihood or unset the tag.")

    def _recode(self, labels: CrowdLabels) -> CrowdLabels:
        """Express new labels in the fitted vocabularies; unknown workers share one extra code."""
        if labels.workers is self.workers_ and labels.classes is self.classes_:
            return labels
        class_codes = lookup(labels.classes, self.classes_)
        unknown = (class_codes < 0) & (labels.class_totals > 0)
        if unknown.any():
            value = labels.classes[int(np.argmax(unknown))]
            raise DataError(
                f"Label {value!r}{suggestion(value, self.classes_)} was not among the classes of "
                f"the fit ({describe_ids(self.classes_)}); correct it, or fit again with it."
            )
        worker_codes = lookup(labels.workers, self.workers_)
        self._note_strangers(labels, worker_codes)
        worker_codes[worker_codes < 0] = len(self.workers_)
        return CrowdLabels(
            labels.task,
            worker_codes[labels.worker].astype(np.int32),
            class_codes[labels.label],
            labels.tasks,
            np.append(self.workers_.astype(object), [None]),
            self.classes_,
            weight=labels.weight,
            frame_library=labels.frame_library,
        )

    def _note_strangers(self, labels: CrowdLabels, codes: NDArray[np.int32]) -> None:
        """Warn of workers that the fit has not seen: what they say counts for little or nothing."""
        strangers = (codes < 0) & (labels.labels_per_worker > 0)
        if strangers.any():
            first = labels.workers[strangers].tolist()[0]
            warnings.warn(
                f"{int(strangers.sum())} of {labels.n_workers} workers, such as {first!r}, were "
                f"not in the fit{suggestion(first, self.workers_)}; they count as workers about "
                "whom nothing is known.",
                WisecrowdWarning,
                stacklevel=4,
            )

    # ------------------------------------------------------------------------------ keep results

    def task_columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns of ``task_table``: task, label, confidence, tie, n_labels."""
        self._require_fitted()
        return {
            "task": self.tasks_,
            "label": self.labels_,
            "confidence": self.confidence_,
            "tie": self.ties_,
            "n_labels": self.labels_per_task_,
        }

    def save(self, path: Any) -> None:
        """Write the fitted method as a folder of JSON and npy files; wisecrowd.load reads it."""
        self._require_fitted()
        importlib.import_module("wisecrowd.storage.methods").save(self, path)


def _posterior_of(model: Aggregator, labels: CrowdLabels) -> Floats:
    """Return what a method, fitted to whatever data, says of these tasks in their class order."""
    if not model.__sklearn_is_fitted__():
        model = copy.deepcopy(model).fit(labels)  # the user's own object stays as it is
    given = (
        model.predict_proba(labels) if model.tags().inductive else model._known_posterior(labels)
    )
    given = given.toarray() if hasattr(given, "toarray") else given
    column = lookup(labels.classes, model.classes_)
    probas = np.zeros((labels.n_tasks, labels.n_classes))
    probas[:, column >= 0] = given[:, column[column >= 0]]
    return probas


def _one_vs_rest(name: str) -> str:
    return spelled(f"OneVsRest({name}())", f"-m one-vs-rest -p method={kebab_case(name)}")


def _total_weight(labels: CrowdLabels) -> float:
    return float(labels.n_annotations if labels.weight is None else labels.weight.sum())
