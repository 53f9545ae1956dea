"""TokenWise: tokens as tasks for any method for classes, then the best legal tags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.messages.option_spelling import for_reader, parameter
from wisecrowd.core.problem import Problem
from wisecrowd.core.registry import get_method
from wisecrowd.core.result import Fit, dense_rows
from wisecrowd.core.saved_attributes import Saved, SavedArray, SavedValue
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.answers import ClassAnswers
from wisecrowd.kinds.classes.families.wrapped_method import DEFAULT, WrappedMethod
from wisecrowd.kinds.classes.prior import class_prior
from wisecrowd.kinds.sequences.answers import SequenceAnswers
from wisecrowd.kinds.sequences.methods.marked_spans import WorkerSpans
from wisecrowd.kinds.sequences.methods.tag_chains import (
    ChainCounts,
    SequenceProblem,
    TagChains,
    chain_kernels,
    known_of,
    no_context,
    outside_only,
    require_few_tags,
)

LEAST = 1e-12  # smallest probability of a tag, so that every legal sequence is possible


@dataclass(eq=False, repr=False, kw_only=True)
class TokenWise(WrappedMethod):
    r"""Every token is a task for a method for classes; the answers are the best legal tags.

    .. math::
        \hat z = \arg\max_z \sum_t \log q_t(z_t) \quad\text{over legal } z

    with :math:`q_t` the method's posterior for token :math:`t`. In the scheme "bio", ``I-x`` may
    only follow ``B-x`` or ``I-x``. The best legal sequence is found by Viterbi's algorithm, which
    is better than repairs of single tags. A span that no worker marked gives way to the overlapping
    one with the most votes.

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
        Probability of every tag of every token; see the notes.
    span_confidence_ : (n_spans,)
        Probability of each span; see the notes.
    tag_counts_ : (n_workers + 1, 1, n_classes, n_classes)
        Expected counts of a worker's tags by true tag, with their prior; the last row is an unknown
        worker.
    start_counts_, step_counts_ : (n_classes,), (n_classes, n_classes)
        Expected counts of first tags and of steps from tag to tag, with their prior.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Expected share of right tags.
    span_precision_, span_recall_ : (n_workers,)
        Of the worker's spans, against the answers.

    Notes
    -----
    The method's posterior is not a good confidence of spans: tokens of a span count as independent
    tasks, labels of a token as independent, and votes are not probabilities at all. Therefore the
    probabilities of tags and spans come from chains and votes, as those of HMMCrowd, with confusion
    matrices and steps that are estimated once, from the method's posterior. Plain tags are classes;
    their ``marginals_`` are the method's own, among legal sequences.

    References
    ----------
    A. T. Nguyen, B. C. Wallace, J. J. Li, A. Nenkova and M. Lease (2017). Aggregating and
    predicting sequence labels from crowd annotations. ACL, 299-309, for the comparison.

    Examples
    --------
    >>> tags = ["B-PER I-PER O", "B-PER I-PER O", "B-PER O O"]
    >>> TokenWise("majority-vote").fit(([1, 1, 1], ["ann", "bob", "cem"], tags)).tags_.tolist()
    ['B-PER I-PER O']
    """

    takes: ClassVar[str] = "sequences"
    saves: ClassVar[dict[str, Saved]] = {
        "method_": SavedValue(lambda value: isinstance(value, Aggregator), "a method"),
        "tag_counts_": SavedArray("workers 1 K K", "positive"),
        "start_counts_": SavedArray("K", "amount"),
        "step_counts_": SavedArray("K K", "amount"),
    }

    def tags(self) -> Tags:
        """Return the method's tags that hold for sequences too."""
        inside = self.method.tags() if isinstance(self.method, Aggregator) else self.promises
        return Tags(
            inductive=inside.inductive, exact_replication=inside.exact_replication,
            stochastic=inside.stochastic,
        )  # fmt: skip

    def _saved_fault(self) -> str:
        inside = self.method_
        if type(inside) is not type(self.method) or not inside.__sklearn_is_fitted__():
            return "method_ is not that of the parameter method"
        if (len(inside.workers_), len(inside.classes_)) != (len(self.workers_), len(self.classes_)):
            return "method_ does not fit workers_ and classes_"
        return ""

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {"workers": sizes["J"] + 1}  # the last row is that of an unknown worker

    def _validate_parameters(self) -> None:
        if not isinstance(self.method, Aggregator) or self.method.takes != "labels":
            named = for_reader(f"{get_method(DEFAULT)()!r}", parameter("method", DEFAULT))
            raise ParameterError(
                f"method is {self.method!r}; give a method for classes, such as {named}."
            )
        super()._validate_parameters()

    def _fit(self, problem: SequenceProblem) -> Fit:
        data, inside = problem.data, self._fresh_method()
        require_few_tags(data, 1)
        given = _tokens(inside, problem)
        found = inside._fit(given)
        inside._publish(given.data, replace(found, findings=()))
        path, marginals = legal_tags(problem, dense_rows(found.probas))
        chains = _chains(problem)
        counts = chains.counts_of(marginals)
        answers = _answers(problem, counts, path, marginals, data.n_workers)
        worth = WorkerSpans.of(data, replace(answers, marginals=marginals))
        return Fit(
            answers,
            worth.accuracy,
            worth.error,
            n_iter=found.n_iter,
            converged=found.converged,
            extra={
                "method": inside,
                **counts.published(chains.context),
                **worth.published(),
            },
        )

    def _predict(self, problem: SequenceProblem) -> SequenceAnswers:
        found = self.method_._predict(_tokens(self.method_, problem))
        path, marginals = legal_tags(problem, dense_rows(ClassAnswers.of(found).probas))
        counts = ChainCounts(self.tag_counts_, self.start_counts_, self.step_counts_)
        return _answers(problem, counts, path, marginals, len(self.workers_))


def _chains(problem: SequenceProblem) -> TagChains:
    """Return the chains that judge the spans."""
    data = problem.data
    context, other = no_context(data.tag_scheme), problem.prior.evidence(data)
    return TagChains(data, known_of(problem), context, variational=True, other=other)


def _answers(
    problem: SequenceProblem,
    counts: ChainCounts,
    path: NDArray[np.int32],
    marginals: Floats,
    n_workers: int,
) -> SequenceAnswers:
    """Return the method's tags as spans that somebody marked, with the claims of chains.

    Plain tags are classes, so their probabilities stay those of the method.
    """
    chains = _chains(problem)
    path = chains.bound(path)
    answers = SequenceAnswers(problem.data.token_pointer, path, *chains.claims(counts, path))
    answers = chains.with_doubt(answers, problem.prior, n_workers)
    return answers if problem.data.scheme == "bio" else replace(answers, marginals=marginals)


def _tokens(method: Aggregator, problem: SequenceProblem) -> Problem:
    """Return the problem of the method for classes: its tasks are the tokens."""
    tokens, known = problem.data.to_labels(), problem.prior.gold
    gold = None if known is None else np.append(tokens.classes, [None])[known]
    return method._problem(tokens, class_prior(problem.prior.tokens, gold, tokens))


def legal_tags(problem: SequenceProblem, probas: Floats) -> tuple[NDArray[np.int32], Floats]:
    """Return the best legal tags, and the probabilities of tags among legal sequences.

    Tokens that nobody marked stay outside of all spans.
    """
    data = problem.data
    kernels = chain_kernels(data)
    legal = data.tag_scheme.legal
    log = np.log(np.maximum(probas, LEAST))
    start, step = legal[-1].astype(np.float64), legal[:-1].astype(np.float64)
    can = log
    if problem.prior.tokens is None:
        can = np.where(outside_only(data, known_of(problem)), -np.inf, log)
    with np.errstate(divide="ignore"):
        path = kernels.best_path(can, data.token_pointer, np.log(start), np.log(step))
    return path, kernels.smooth(log, data.token_pointer, start, step).marginals
