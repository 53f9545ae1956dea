"""Aggregator: the base class of all inference methods."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import NOBODY, Annotations
from wisecrowd.core.answers import MOST_ALONE, ONE_WORKER, one_worker_finding, only_worker
from wisecrowd.core.estimator import Estimator, exclusive_fit
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.findings import Finding, not_converged, warn_of
from wisecrowd.core.footprint import Footprint, bytes_needed
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import as_generator
from wisecrowd.core.problem import Problem
from wisecrowd.core.registry import kebab_case
from wisecrowd.core.result import Fit, Kept
from wisecrowd.core.saved_attributes import require_shapes

_PUBLISHED = (
    "worker_accuracy", "worker_accuracy_error", "n_iter", "converged", "history", "findings",
    "warnings", "class_prior", "confusion",
)  # fmt: skip


@dataclass(frozen=True)
class Tags:
    """Properties of a method, which the common checks verify.

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
        It handles two classes only (wrap it in OneVsRest for more).
    exact_replication : bool
        An integer weight is the same as repeating the annotation.
    online : bool
        ``update`` works: new answers join a fit without starting again.
    shardable : bool
        It fits a pack shard by shard (``wisecrowd.fit_pack``).
    repeatable : bool
        In a pack, tasks with the same labels may share a row.
    pooled : bool
        Workers inform each other beyond the tasks they share, so workers of unrelated tasks matter.
    stochastic : bool
        It draws random numbers even from a given start, so renaming tasks changes the draws.
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
    online: bool = False
    shardable: bool = False
    repeatable: bool = True


class Aggregator(Estimator):
    """Base of all inference methods: ``fit`` and ``predict`` are written once, here.

    A method is a dataclass whose fields are its parameters, with ``_fit(problem) -> Fit``.
    Inductive methods have ``_predict(problem)``, which may use fitted attributes only. A fit sets
    no attribute before its end: :meth:`fit` publishes the result of ``_fit`` last. ``takes`` names
    the kind of labels; the attributes below are those of classes.

    Attributes
    ----------
    tasks_, workers_, classes_ : arrays of ids
    labels_ : (n_tasks,) the most probable class of each task
    probas_ : (n_tasks, n_classes) posterior
    ties_ : (n_tasks,) bool, whether the label was a tie
    worker_accuracy_, worker_accuracy_error_ : (n_workers,) and its standard error
    class_prior_, confusion_ : where the model has them
    n_iter_, converged_, history_
    findings_ : tuple of Finding, problems with the labels or the fit
    warnings_ : tuple of str, the texts of the findings
    saw_gold_ : bool, whether known answers went into the fit, as gold or as a certain task prior
    """

    promises: ClassVar[Tags] = Tags()
    footprint: ClassVar[Footprint | None] = None

    def tags(self) -> Tags:
        """Return the properties of the method with its current parameters."""
        return self.promises

    def __sklearn_tags__(self) -> Any:
        """Return the tags that scikit-learn asks for; nothing else calls this."""
        tags = importlib.import_module("sklearn.utils")
        return tags.Tags(
            estimator_type=None,
            target_tags=tags.TargetTags(required=False),
            input_tags=tags.InputTags(),
        )

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
            Where to start; the default depends on the method and is usually the soft vote.
        """
        return self._fit_and_publish(labels, gold, task_prior, init, checks=True)

    def _fit_without_checks(self, labels: Any) -> Self:
        """Fit to annotations as a step of a larger analysis that reports findings of its own."""
        return self._fit_and_publish(labels, None, None, None, checks=False)

    def _fit_for_targets(self, labels: Annotations, gold: Any) -> Self:
        """Fit to the labels that a classifier learns from; those of one worker are supervision."""
        several = only_worker(labels) is None
        return self._fit_and_publish(labels, gold, None, None, checks=several)

    def _fit_and_publish(
        self, labels: Any, gold: Any, task_prior: Any, init: Any, *, checks: bool
    ) -> Self:
        self._validate_parameters()
        kind = self._kind()
        labels = kind.gate(labels)
        self._require_binary(labels)
        if labels.n_annotations == 0:
            raise DataError("There are no annotations to fit; select tasks that have labels.")
        if self.footprint is not None:
            sizes = [f"{len(ids)} {name}" for name, ids in labels.vocabularies().items()]
            require_memory(
                self.memory_needed(labels),
                f"{type(self).__name__} with {', '.join(sizes)} would",
                "use one-coin or majority-vote, which need a few bytes per annotation, fewer "
                "tasks, or pack the files: "
                + for_reader(
                    "wisecrowd.pack(path, 'crowd.pack'), then wisecrowd.fit_pack",
                    "wisecrowd pack FILE -o crowd.pack, then wisecrowd aggregate crowd.pack",
                ),
            )
        prior = kind.prior(task_prior, gold, labels)
        problem = self._problem(labels, prior, kind.start(init, labels))
        with exclusive_fit(self):
            result = self._fit(problem)
            if checks:
                informed = gold is not None or task_prior is not None
                result = self._with_humility(labels, result, informed)
            if checks and kind.findings is not None:
                found = self._findings(problem, result, prior.gold)
                result = replace(result, findings=(*result.findings, *found))
            self._publish(labels, result)
            self.saw_gold_ = gold is not None or getattr(prior, "certain", False)
            if self.tags().online:
                self._kept = Kept(labels, prior.gold, given=prior.given)
        warn_of(self.findings_, stacklevel=3)
        return self

    def _with_humility(self, data: Any, result: Fit, informed: bool) -> Fit:
        """Return the result without claims that labels of one worker cannot support.

        A fit that is ``informed`` by gold or a task prior can make them.
        """
        worker = None if informed else only_worker(data)
        if worker is None or worker == NOBODY:
            return result
        kind = self._kind()
        answers = kind.answers.of(result.answers).capped(MOST_ALONE)
        finding = one_worker_finding(worker, kind.answers.alone)
        return replace(result, answers=answers, findings=(*result.findings, finding))

    def _require_binary(self, labels: Any) -> None:
        """Refuse more than two classes if the method handles two."""
        if self.tags().binary and labels.n_classes > 2:
            name = type(self).__name__
            wrapped = for_reader(
                f"OneVsRest({name}())", f"-m one-vs-rest -p method={kebab_case(name)}"
            )
            raise DataError(
                f"{name} handles two classes and there are {labels.n_classes}; wrap it: {wrapped}."
            )

    def update(
        self,
        answers: Any,
        *,
        sweeps: int = 0,
        forget: float | str = 1.0,
        stepwise: bool = False,
    ) -> Self:
        """Add new answers to a fit without starting again (incremental EM).

        New tasks, workers and classes join. A repeated pair of task and worker replaces the old
        answer. Answers count in the order of their timestamps, else of tasks and workers. A method
        that is not fitted is fitted. Methods with counts per worker, such as dawid-skene and
        one-coin, use one answer at a time; the others use all of them, then pass over all tasks
        from the previous posterior. Methods that do not iterate name those that can be updated.

        Parameters
        ----------
        answers : CrowdLabels, long frame, (task, worker, label) or tasks × workers matrix
            The new answers only.
        sweeps : int
            Further passes over all tasks; with many, the result is that of ``fit``.
        forget : float or "auto"
            Factor, up to 1, of the weight of all earlier answers, for workers who change. "auto"
            takes the best of 1, 0.9, 0.7 and 0.5: each updates a copy with the earlier half of the
            new answers and predicts the later half. Only for methods with counts per worker.
        stepwise : bool
            Keep nothing but counts, for endless streams (stepwise EM). Results are then about the
            tasks of the new answers only. Only for dawid-skene.
        """
        updating = self._kind().updating
        if updating is None or not self.tags().online:
            able = [] if updating is None else updating().updatable(self.takes)
            raise ParameterError(
                f"{type(self).__name__} cannot be updated; fit it again with all labels, or use "
                f"one of {', '.join(able)}."
            )
        if not self.__sklearn_is_fitted__():
            return self.fit(answers)
        self._validate_parameters()
        updating().update_method(self, answers, sweeps=sweeps, forget=forget, stepwise=stepwise)
        return self

    def memory_needed(self, labels: Any) -> int:
        """Estimate the memory in bytes of a fit to these labels, without the labels themselves.

        The estimate is for default parameters. It is 0 for methods without a ``footprint``, which
        check their memory during the fit. ``fit`` refuses to start without enough memory.

        Examples
        --------
        >>> from wisecrowd import CrowdLabels
        >>> from wisecrowd.aggregation import DawidSkene
        >>> labels = CrowdLabels.from_matrix(np.zeros((1000, 5), dtype=int), classes=range(50))
        >>> 1e6 < DawidSkene().memory_needed(labels) < 1e7
        True
        """
        if self.footprint is None:
            return 0
        max_pairs = getattr(self, "max_pairs", None)
        return bytes_needed(self.footprint, self._kind().gate(labels), max_pairs=max_pairs)

    def _problem(self, data: Any, prior: Any, start: Any = None) -> Problem:
        """Return the input of ``_fit`` and ``_predict``; the engine depends on the labels."""
        rng = as_generator(getattr(self, "random_state", None))
        engine = importlib.import_module("wisecrowd.inference.engine").MemoryEngine()
        return Problem(data, prior, engine, start, rng)

    def _fit(self, problem: Any) -> Fit:
        raise TypeError(f"{type(self).__name__} must define _fit.")

    def _fit_pack(self, problem: Any) -> Fit:
        """Return the fit to a pack: the same, unless a method works differently on its sums."""
        return self._fit(problem)

    def _findings(self, problem: Problem, result: Fit, gold: Any) -> list[Finding]:
        """Return the findings of the common checks; a method may override this to add its own."""
        find = self._kind().findings
        if find is None:
            return self._unfinished(result)
        known = None if gold is None else gold >= 0
        data, labels_only = self._counted(problem.data), not problem.prior.given
        return [*find(data, result, known, labels_only=labels_only), *self._unfinished(result)]

    def _unfinished(self, result: Fit) -> list[Finding]:
        """Return a finding if the fit should have converged and did not."""
        usual = inspect.signature(type(self).__init__).parameters.get("max_iter")
        # A lower max_iter than the default means early stopping on purpose.
        if result.converged or usual is None or self.max_iter < usual.default:
            return []
        return [not_converged(result.n_iter, type(self).__name__)]

    def _publish(self, data: Annotations, result: Fit) -> None:
        known = data.attributes()
        made = self._kind().answers.of(result.answers)
        result = made.judged(result, data)
        answers = made.attributes(known)
        published = {f"{name}_": ids for name, ids in data.vocabularies().items()} | answers | known
        for name in _PUBLISHED:
            value = getattr(result, name)
            if value is not None:
                published[name + "_"] = value
        published |= {name + "_": value for name, value in result.extra.items()}
        require_shapes(self, published)
        self._forget()
        vars(self).update(published)
        self._frame_library = data.frame_library

    # ---------------------------------------------------------------------------------- predict

    def predict_proba(self, labels: Any, *, task_prior: Any = None, gold: Any = None) -> Any:
        """Return the posterior (n_tasks, n_classes) of new tasks labelled by known workers.

        Workers that the fit has not seen are treated as unknown workers.
        """
        answers = self._predicted(labels, task_prior, gold)
        if not hasattr(answers, "probas"):
            raise DataError(f"{type(self).__name__} has no probabilities; use predict.")
        return answers.probas

    def predict(self, labels: Any, *, task_prior: Any = None, gold: Any = None) -> NDArray[Any]:
        """Return the answer to each new task, the most probable class; see `predict_proba`."""
        answers = self._predicted(labels, task_prior, gold)
        columns = answers.task_columns(answers.attributes(vars(self)))
        return next(iter(columns.values()))

    def _predicted(self, labels: Any, task_prior: Any, gold: Any) -> Any:
        """Return the answers to new tasks."""
        self._require_fitted()
        if not (self.tags().inductive or self.tags().predicts):
            raise DataError(
                f"{type(self).__name__} has no posterior for new tasks; fit on all labels instead."
            )
        kind = self._kind()
        known = kind.gate(labels).in_fitted_ids(self, stacklevel=4)
        problem = self._problem(known, kind.prior(task_prior, gold, known))
        answers = kind.answers.of(self._predict(problem))
        alone = any(finding.id == ONE_WORKER for finding in self.findings_)
        return answers.capped(MOST_ALONE) if alone else answers

    def _predict(self, problem: Any) -> Any:
        raise TypeError(f"{type(self).__name__} must define _predict or set inductive=False.")

    def fit_predict(self, labels: Any, y: Any = None, **fit_options: Any) -> Any:
        """Fit and return the answers: a pandas Series by task or item for pandas, else an array."""
        self.fit(labels, y, **fit_options)
        (name, ids), (column, values), *_ = self._answer_columns().items()
        if self._frame_library == "pandas":
            pandas = importlib.import_module("pandas")
            return pandas.Series(values, pandas.Index(ids, name=name), name=column)
        return values

    def score(self, labels: Any, truth: Any = None) -> float:
        """Return the accuracy on ``truth`` or, without it, the log-likelihood per annotation.

        Truth is a mapping from task to class, a (task, label) frame, or one class per task; tasks
        without a truth do not count.
        """
        self._require_fitted()
        kind = self._kind()
        known = kind.gate(labels).in_fitted_ids(self)
        problem = self._problem(known, kind.prior(None, None, known))
        if truth is None:
            if not self.tags().likelihood:
                raise ParameterError(
                    f"{type(self).__name__} has no likelihood to score without truth; give truth."
                )
            total = known.n_annotations if known.weight is None else known.weight.sum()
            return self._log_likelihood(problem) / max(float(total), 1e-300)
        if self.tags().inductive:
            answers = kind.answers.of(self._predict(problem))
        else:
            answers = self._known_answers(known)
        return answers.score(truth, known, vars(self))

    def _known_answers(self, data: Annotations) -> Any:
        """Return the answers of the fit to some of its own tasks."""
        rows = lookup(data.tasks, self.tasks_)
        if (rows < 0).any():
            raise DataError(
                f"Task {data.tasks[int(np.argmax(rows < 0))]!r} was not in the fit, and "
                f"{type(self).__name__} cannot predict new tasks."
            )
        return self._kind().answers.of_fit(vars(self), rows)

    def _log_likelihood(self, problem: Any) -> float:
        raise TypeError(f"{type(self).__name__} must define _log_likelihood or unset the tag.")

    # ------------------------------------------------------------------------------ keep results

    def save(self, path: Any, *, labels: bool = False) -> None:
        """Write the fitted method as a folder of JSON and npy files; wisecrowd.load reads it.

        With ``labels`` the labels of the fit are in it too, so that ``update`` works after loading.
        """
        self._require_fitted()
        updating = self._kind().updating
        if labels and updating is None:
            raise ParameterError(
                f"{type(self).__name__} cannot be updated, so that its labels are not saved; leave "
                "out labels."
            )
        kept = updating().state_of(self) if labels and updating is not None else None
        importlib.import_module("wisecrowd.storage.saved_methods").save(self, path, kept)
