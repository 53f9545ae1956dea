"""BinaryRelevance: every class is a two-class problem, for any method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.messages.option_spelling import for_reader, parameter
from wisecrowd.core.problem import Problem
from wisecrowd.core.registry import get_method
from wisecrowd.core.result import Fit, dense_rows
from wisecrowd.core.saved_attributes import Saved, SavedValue, number_between
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.answers import ClassAnswers
from wisecrowd.kinds.classes.families.wrapped_method import DEFAULT, WrappedMethod
from wisecrowd.kinds.classes.prior import class_prior
from wisecrowd.kinds.sets.answers import SetAnswers
from wisecrowd.kinds.sets.container import OUT_AND_IN
from wisecrowd.kinds.sets.methods.base import SetMethod, SetProblem, WorkerSets
from wisecrowd.kinds.sets.methods.label_rules import LabelRules
from wisecrowd.kinds.sets.methods.set_mixture import humbled


@dataclass(eq=False, repr=False, kw_only=True)
class BinaryRelevance(WrappedMethod, SetMethod):
    r"""Whether a class is in the set is a task of two classes, for each class by itself.

    .. math::
        p_{ik} = P(z_{ik} = 1 \mid \{[k \in Y_{ij}]\}_j)

    by any method for classes, with one fit per class. Nothing is shared between classes.

    Use it when classes have little to do with each other and have many labels each, or to compare
    with the methods for sets. Cost: that of the method, times the number of classes.

    Parameters
    ----------
    method : method or its name
        The method for two classes. Set its own parameters as ``method__tol`` and so on.
    threshold : float or "cardinality"
        A class is in the set if it is at least this probable. "cardinality" takes as many classes
        as the probabilities sum to.

    Attributes
    ----------
    methods_ : list of fitted methods, one per class
        Their classes are "out" and "in".
    labels_ : (n_tasks,) str
        The classes of each task, with ``|`` between them.
    probas_ : (n_tasks, n_classes)
        Probability of every class; rows do not sum to one. They are less extreme than the
        method's, as those of SharedTwoCoin.
    members_ : (n_tasks, n_classes) bool
        The classes of each task as a table.
    doubt_ : float
        Smallest probability of a class, 1 / (2 n_tasks + 4): few tasks give no certainty.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Expected share of right decisions about single classes.
    worker_sensitivity_, worker_false_alarm_ : (n_workers,)
        Expected rates over all classes together.
    set_size_, crowd_set_size_ : (n_workers,)
        Mean size of the worker's sets, and of the sets of others on the same tasks.

    Notes
    -----
    A rare class has few labels that teach the rates of workers, and borrows none from other
    classes; shared-two-coin does. Findings of the separate fits are left out.

    References
    ----------
    M.-L. Zhang and Z.-H. Zhou (2014). A review on multi-label learning algorithms. IEEE
    Transactions on Knowledge and Data Engineering 26, 1819-1837.

    Examples
    --------
    >>> sets = ["cat|dog", "cat|dog", "dog", "", "", "bird"]
    >>> task, worker = [1, 1, 1, 2, 2, 2], ["ann", "bob", "cem"] * 2
    >>> BinaryRelevance("majority-vote").fit((task, worker, sets)).labels_.tolist()
    ['cat|dog', '']
    """

    saves: ClassVar[dict[str, Saved]] = {
        "methods_": SavedValue(
            lambda value: isinstance(value, list) and all(isinstance(m, Aggregator) for m in value),
            "a list of methods",
        ),
        "doubt_": number_between(0.0, 0.25),
    }

    def tags(self) -> Tags:
        """Return the method's tags that hold for sets too."""
        inside = self.method.tags() if isinstance(self.method, Aggregator) else self.promises
        return Tags(
            inductive=inside.inductive, exact_replication=inside.exact_replication,
            stochastic=inside.stochastic,
        )  # fmt: skip

    def _saved_fault(self) -> str:
        if len(self.methods_) != len(self.classes_):
            return f"methods_ are {len(self.methods_)} where {len(self.classes_)} are needed"
        for inside in self.methods_:
            if type(inside) is not type(self.method) or not inside.__sklearn_is_fitted__():
                return "methods_ are not those of the parameter method"
            if len(inside.workers_) != len(self.workers_) or len(inside.classes_) != 2:
                return "methods_ do not fit workers_ and two classes"
        return ""

    def _validate_parameters(self) -> None:
        if not isinstance(self.method, Aggregator) or self.method.takes != "labels":
            named = for_reader(f"{get_method(DEFAULT)()!r}", parameter("method", DEFAULT))
            raise ParameterError(
                f"method is {self.method!r}; give a method for classes, such as {named}."
            )
        super()._validate_parameters()

    def _fit(self, problem: SetProblem) -> Fit:
        inside = [
            self._fit_one(_one_class(self.method, problem, k))
            for k in range(problem.data.n_classes)
        ]
        methods, fits = map(list, zip(*inside, strict=True))
        probas = _probabilities([found.probas for found in fits])
        # The rule of succession, with half a task more with each class and half a task without.
        doubt = 0.5 / (np.count_nonzero(problem.data.labels_per_task) + 2)
        worth = WorkerSets.of(problem.data, probas)
        return Fit(
            self._honest(probas, problem, doubt),
            worth.accuracy,
            worth.error,
            n_iter=max(found.n_iter for found in fits),
            converged=all(found.converged for found in fits),
            extra={"methods": methods, "doubt": doubt, **worth.published()},
        )

    def _predict(self, problem: SetProblem) -> SetAnswers:
        found = [
            ClassAnswers.of(inside._predict(_one_class(inside, problem, k))).probas
            for k, inside in enumerate(self.methods_)
        ]
        return self._honest(_probabilities(found), problem, self.doubt_)

    def _honest(self, probas: Floats, problem: SetProblem, doubt: float) -> SetAnswers:
        data, prior = problem.data, problem.prior
        usual = 0.5 if prior.probas is None else prior.probas
        rules = LabelRules.none(data.n_classes)
        found = humbled(probas, data, rules, usual=usual) * (1 - 2 * doubt) + doubt
        return self._answers(
            found if prior.known is None else np.where(prior.known[:, None], probas, found)
        )


def _one_class(method: Aggregator, problem: SetProblem, k: int) -> Problem:
    """Return the problem of the method for classes: whether class ``k`` is in the set."""
    labels, prior = problem.data.to_labels(k), problem.prior
    gold = rows = None
    if prior.known is not None and prior.members is not None:
        names = np.array([*OUT_AND_IN, None], dtype=object)
        gold = names[np.where(prior.known, prior.members[:, k].astype(np.int64), 2)]
    if prior.probas is not None:
        rows = np.stack([1 - prior.probas[:, k], prior.probas[:, k]], axis=1)
    return method._problem(labels, class_prior(rows, gold, labels))


def _probabilities(parts: list[Any]) -> Floats:
    """Return (n_tasks, n_classes) probabilities of being in the set."""
    return np.stack([np.clip(dense_rows(one)[:, 1], 0.0, 1.0) for one in parts], axis=1)
