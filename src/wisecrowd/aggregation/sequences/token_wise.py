"""TokenWise: tokens as tasks for any method for classes, then the best legal tags."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.answers import ClassAnswers
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.messages.option_spelling import for_reader, parameter
from wisecrowd.core.problem import Problem
from wisecrowd.core.registry import get_method
from wisecrowd.core.result import Fit, dense_rows
from wisecrowd.core.saved_attributes import Saved, SavedValue
from wisecrowd.core.sequence_answers import SequenceAnswers
from wisecrowd.core.sequences import CrowdSequences
from wisecrowd.core.task_prior import class_prior
from wisecrowd.families.chain_method import SequenceProblem
from wisecrowd.families.tag_chains import WorkerSpans, span_confidence
from wisecrowd.kernels import kernels_for

Floats = NDArray[np.float64]
DEFAULT = "dawid-skene"
LEAST = 1e-12  # smallest probability of a tag, so that every legal sequence is possible


@dataclass(eq=False, repr=False, kw_only=True)
class TokenWise(Aggregator):
    r"""Every token is a task for a method for classes; the answers are the best legal tags.

    .. math::
        \hat z = \arg\max_z \sum_t \log q_t(z_t) \quad\text{over legal } z

    with :math:`q_t` the method's posterior for token :math:`t`. In the scheme "bio", ``I-x`` may
    only follow ``B-x`` or ``I-x``. The best legal sequence is found by Viterbi's algorithm, which
    is better than repairs of single tags.

    Use it when tags of neighbouring tokens say little about each other, as with parts of speech,
    or to compare with the methods for spans. Cost: that of the method with tokens as tasks.

    Parameters
    ----------
    method : method or its name
        The method for classes. Set its own parameters as ``method__tol`` and so on.

    Attributes
    ----------
    method_ : fitted method
        Its tasks are the tokens, one sequence after the other.
    tags_ : (n_tasks,) str
        The tags of each task, with a space between them.
    marginals_ : (n_tokens, n_classes)
        Probability of every tag of every token among legal sequences.
    span_confidence_ : (n_spans,)
        Probability of each span among legal sequences.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Expected share of right tags.
    span_precision_, span_recall_ : (n_workers,)
        Of the worker's spans, against the answers.

    Notes
    -----
    Tokens of a span count as independent tasks, so the confidence of spans is too high.

    References
    ----------
    A. T. Nguyen, B. C. Wallace, J. J. Li, A. Nenkova and M. Lease (2017). Aggregating and
    predicting sequence labels from crowd annotations. ACL, 299-309, for the comparison.

    Examples
    --------
    >>> tags = ["B-PER I-PER O", "O I-PER O", "B-PER O O"]
    >>> TokenWise("majority-vote").fit(([1, 1, 1], ["ann", "bob", "cem"], tags)).tags_.tolist()
    ['B-PER I-PER O']
    """

    method: Any = field(default=DEFAULT, kw_only=False)

    takes: ClassVar[str] = "sequences"
    saves: ClassVar[dict[str, Saved]] = {
        "method_": SavedValue(lambda value: isinstance(value, Aggregator), "a method"),
    }

    def __post_init__(self) -> None:
        if isinstance(self.method, str):
            self.method = get_method(self.method)()

    def tags(self) -> Tags:
        """Return the method's tags that hold for sequences too."""
        inside = self.method.tags() if isinstance(self.method, Aggregator) else self.promises
        return Tags(
            inductive=inside.inductive, exact_replication=inside.exact_replication,
            stochastic=inside.stochastic,
        )  # fmt: skip

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; a method may also be given by its name."""
        if "method" in params:
            self.method = params.pop("method")
            self.__post_init__()
        return super().set_params(**params)

    def _saved_fault(self) -> str:
        inside = self.method_
        if type(inside) is not type(self.method) or not inside.__sklearn_is_fitted__():
            return "method_ is not that of the parameter method"
        if (len(inside.workers_), len(inside.classes_)) != (len(self.workers_), len(self.classes_)):
            return "method_ does not fit workers_ and classes_"
        return ""

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        if not isinstance(self.method, Aggregator) or self.method.takes != "labels":
            named = for_reader(f"{get_method(DEFAULT)()!r}", parameter("method", DEFAULT))
            raise ParameterError(
                f"method is {self.method!r}; give a method for classes, such as {named}."
            )
        self._fresh()._validate_parameters()

    def _fresh(self) -> Aggregator:
        copy: Aggregator = type(self.method)(**self.method.get_params(deep=False))
        return copy

    def _fit(self, problem: SequenceProblem) -> Fit:
        data, inside = problem.data, self._fresh()
        given = _tokens(inside, problem)
        found = inside._fit(given)
        inside._publish(given.data, replace(found, findings=()))
        answers = legal_answers(data, dense_rows(found.probas))
        worth = WorkerSpans.of(data, answers)
        return Fit(
            answers,
            worth.accuracy,
            worth.error,
            n_iter=found.n_iter,
            converged=found.converged,
            extra={"method": inside, **worth.published()},
        )

    def _predict(self, problem: SequenceProblem) -> SequenceAnswers:
        found = self.method_._predict(_tokens(self.method_, problem))
        return legal_answers(problem.data, dense_rows(ClassAnswers.of(found).probas))


def _tokens(method: Aggregator, problem: SequenceProblem) -> Problem:
    """Return the problem of the method for classes: its tasks are the tokens."""
    tokens, known = problem.data.to_labels(), problem.prior.gold
    gold = None if known is None else np.append(tokens.classes, [None])[known]
    return method._problem(tokens, class_prior(None, gold, tokens))


def legal_answers(data: CrowdSequences, probas: Floats) -> SequenceAnswers:
    """Return the best legal tags and the probabilities among legal sequences."""
    kernels = kernels_for("tag_chains", len(data.tags))
    legal = data.tag_scheme.legal
    log = np.log(np.maximum(probas, LEAST))
    start, step = legal[-1].astype(np.float64), legal[:-1].astype(np.float64)
    with np.errstate(divide="ignore"):
        path = kernels.best_path(log, data.token_pointer, np.log(start), np.log(step))
    posterior = kernels.smooth(log, data.token_pointer, start, step)
    confidence = span_confidence(data.tag_scheme, data.token_pointer, path, posterior, step)
    return SequenceAnswers(data.token_pointer, path, posterior.marginals, confidence)
