r"""Hidden chains of tags: model, updates and objective of the methods for sequences.

.. math::
    P(z, y) = \pi_{z_1} \prod_t T_{z_{t-1} z_t} \prod_{jt} \theta_j[c(y_{j,t-1}, z_t), z_t, y_{jt}]

The context :math:`c` says what a worker's tag depends on besides the true tag.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.parameter_checks import Flag, Limits
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Codes, Floats, Longs
from wisecrowd.inference.dirichlet import divergence, expectation, expected_log
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.kernels import kernels_for
from wisecrowd.kinds.sequences.answers import SequenceAnswers, SequencePrior
from wisecrowd.kinds.sequences.container import CrowdSequences
from wisecrowd.kinds.sequences.kernels import Smoothed, TokenLabels
from wisecrowd.kinds.sequences.methods.marked_spans import MarkedSpans, WorkerSpans, span_confidence
from wisecrowd.kinds.sequences.tag_scheme import TagScheme

RIGHT, WRONG, ILLEGAL = 1.1, 0.1, 1e-3  # pseudo-counts of a worker's tags
TINY = 1e-300
DEPENDENCE = 0.5  # between labels of a task, in the more careful of two posteriors
MOST = 0.9  # largest probability of a span: workers share misreadings
MODEL = 0.8  # share of the chains in the probability of a span; the rest is that of its votes
MOST_TIED = 0.65  # largest probability of a span that one of the only two workers marked
UNMARKED = 0.3  # factor for a span that nobody marked
STEP = 0.1  # pseudo-count of each legal step
COPIES = 6  # of the tables of workers and tokens that are in memory at once
MOST_STEPS = 5e9  # from tag to tag in all tokens; a pass takes about two nanoseconds each
STEPS = 500  # from tag to tag, that take the time of one annotation
MANY_TAGS = 40  # above, a worker's previous tag counts as outside, same type or other type


SequenceProblem = Problem[CrowdSequences, SequencePrior]


class Context(NamedTuple):
    """What a worker's tag depends on besides the true tag.

    Attributes
    ----------
    table : (K + 1, K) int64
        The context of a previous tag (the last row: the start) and a true tag.
    prior : (S, K, K) float64
        Pseudo-counts of tags, by context and true tag.
    """

    table: Longs
    prior: Floats


def no_context(scheme: TagScheme) -> Context:
    """Return the context of workers whose tags depend on the true tag only."""
    n = len(scheme.tags)
    prior = np.full((1, n, n), WRONG) + (RIGHT - WRONG) * np.eye(n)
    return Context(np.zeros((n + 1, n), dtype=np.int64), prior)


def require_few_tags(data: CrowdSequences, n_contexts: int | None = None) -> None:
    """Refuse tags that would take too much memory or hours; both grow with their square.

    Parameters
    ----------
    data : CrowdSequences
    n_contexts : int, optional
        Contexts of a worker's tag, each with a table of true tags and tags; by default those of
        the previous tag.
    """
    K, n_tokens = data.n_classes, int(data.token_pointer[-1])
    if n_contexts is None:
        n_contexts = K + 1 if K <= MANY_TAGS else 3
    what = f"{K} tags"
    if types := len(data.tag_scheme.types):
        what += f" (of {types} types)"
    instead = "merge rare ones, or leave them out"
    tables = COPIES * (data.n_workers + 1) * n_contexts * K * K
    size = 8 * (tables + COPIES * K * (n_tokens + K))
    require_memory(size, f"{what} of {data.n_workers} workers", instead)
    if K > MANY_TAGS and n_tokens * K * K > MOST_STEPS:
        raise DataError(
            f"{what} in {n_tokens} tokens have {n_tokens * K * K / 1e9:.0f} billion steps from tag "
            f"to tag, and at most {MOST_STEPS / 1e9:.0f} can be weighed up; {instead}."
        )


def chain_kernels(data: CrowdSequences) -> Any:
    """Return the kernels for the size of the data; steps between many tags count as labels too."""
    steps = int(data.token_pointer[-1]) * data.n_classes**2
    return kernels_for("tag_chains", max(len(data.tags), steps // STEPS))


class ChainCounts(NamedTuple):
    """Expected counts with their priors: the parameters of Dirichlet distributions.

    Attributes
    ----------
    tags : (J, S, K, K)
        By worker, context, true tag and tag.
    start, step : (K,), (K, K)
        First tags and steps; 0 where the scheme forbids it.
    """

    tags: Floats
    start: Floats
    step: Floats

    def expected(self) -> tuple[Floats, Floats]:
        """Return careful probabilities of first tags and steps: one more of each legal one.

        Few sequences would otherwise confirm themselves.
        """
        more = [np.where(counts > 0, counts + 1, 0.0) for counts in (self.start, self.step)]
        return expectation(more[0]), expectation(more[1])

    def logs(self, *, variational: bool) -> ChainLogs:
        """Return expected logarithms, or logarithms of expectations."""
        tags = expected_log(self.tags) if variational else np.log(expectation(self.tags))
        return ChainLogs(tags, *(_possible_logs(t, variational) for t in (self.start, self.step)))

    def published(self, context: Context) -> dict[str, Any]:
        """Return the attributes of a fit; the last row of the tags is an unknown worker."""
        stranger = unknown_worker(self, context)
        return {
            "tag_counts": np.concatenate([self.tags, stranger]),
            "start_counts": self.start, "step_counts": self.step,
        }  # fmt: skip


class ChainLogs(NamedTuple):
    """Logarithms of the parameters; minus infinity where the scheme forbids a tag."""

    tags: Floats
    start: Floats
    step: Floats


def _possible_logs(counts: Floats, variational: bool) -> Floats:
    """Return the logarithms of rows of probabilities, some of which are zero."""
    rows, total = np.atleast_2d(counts), np.atleast_2d(counts).sum(axis=-1, keepdims=True)
    found = np.full(rows.shape, -np.inf)
    for row, (own, whole) in enumerate(zip(rows, total, strict=True)):
        allowed = own > 0
        if variational:
            found[row, allowed] = expected_log(own[allowed])
        else:
            found[row, allowed] = np.log(own[allowed] / whole)
    return found.reshape(counts.shape)


class ChainFit(NamedTuple):
    """Result of the iterations: counts, the posterior under them, and how it went."""

    counts: ChainCounts
    posterior: Smoothed
    n_iter: int
    converged: bool
    history: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class TagChains:
    """Model of hidden chains: variational Bayes, or EM with the priors as pseudo-counts.

    Attributes
    ----------
    data : CrowdSequences
    known : (n_tokens,) int64
        Codes of known tags, -1 where unknown.
    context : Context
    variational : bool
    other : (n_tokens, K), optional
        Log-likelihoods of tags by something else than labels, for instance a tagger.
    """

    data: CrowdSequences
    known: Longs
    context: Context
    variational: bool
    other: Floats | None = None

    @property
    def labels(self) -> TokenLabels:
        """The workers' tags."""
        data = self.data
        return TokenLabels(
            data.token, data.token_worker, data.tags, data.previous, data.token_weight
        )

    @property
    def kernels(self) -> Any:
        """The kernels for the size of the data."""
        return chain_kernels(self.data)

    @cached_property
    def marked(self) -> MarkedSpans:
        """The spans that workers marked."""
        return MarkedSpans.of(self.data)

    def run(self, max_iter: int, tol: float) -> ChainFit:
        """Alternate between parameters and posterior, from the votes of each token."""
        history: list[float] = []
        old = self._votes()
        counts, converged = self.counts_of(old), False
        for iteration in range(1, max_iter + 1):
            logs = counts.logs(variational=self.variational)
            posterior = self.posterior(logs)
            history.append(posterior.log_evidence - self._penalty(counts, logs))
            moved = float(np.abs(posterior.marginals - old).max(initial=0.0))
            report(Progress(iteration, max_iter, history[-1]))
            converged = moved < tol
            if converged or iteration == max_iter:
                break
            old = posterior.marginals
            counts = self._counts(old, posterior.first, posterior.steps)
        return ChainFit(counts, posterior, iteration, converged, tuple(history))

    def posterior(self, logs: ChainLogs) -> Smoothed:
        """Return the posterior of the chains."""
        return self._smooth(self._evidence(logs.tags), np.exp(logs.start), np.exp(logs.step))

    def answers(self, counts: ChainCounts, fitted: Floats | None = None) -> SequenceAnswers:
        """Return the best legal tags under the fitted parameters, their probabilities and spans.

        Tokens that nobody marked stay outside of all spans, and spans are those that somebody
        marked. The probabilities are those of the chains alone; see :meth:`with_doubt`.

        Parameters
        ----------
        counts : ChainCounts
        fitted : (n_tokens, K), optional
            Posterior that the counts come from; None for new tasks, which they do not contain.
        """
        pointer = self.data.token_pointer
        logs = counts.logs(variational=self.variational)
        evidence = self._evidence(logs.tags)
        if self.other is None:
            evidence[outside_only(self.data, self.known)] = -np.inf
        path = self.bound(self.kernels.best_path(evidence, pointer, logs.start, logs.step))
        marginals, confidence = self.claims(counts, path, fitted)
        return SequenceAnswers(pointer, path, marginals, confidence)

    def bound(self, path: Codes) -> Codes:
        """Return tags whose spans somebody marked; see :meth:`MarkedSpans.bind`.

        Other evidence than labels can support a span that nobody marked, and plain tags have no
        outside to drop one to; such tags stay.
        """
        if self.other is not None or self.data.scheme != "bio":
            return path
        return self.marked.bind(path, self.known)

    def with_doubt(
        self, answers: SequenceAnswers, prior: SequencePrior, n_workers: int
    ) -> SequenceAnswers:
        """Return answers with the votes in their tag probabilities, and with ties of two workers.

        The probabilities are the mean of the claims of the chains and the shares of the votes. No
        side is taken where two workers contradict each other.

        Parameters
        ----------
        answers : SequenceAnswers
            With the claims of the chains.
        prior : SequencePrior
            Known tags or probabilities of tags can say who is right; then there are no ties.
        n_workers : int
            Workers of the fit; a third one can say it too.
        """
        own = answers.marginals
        answers = replace(answers, marginals=(own + self._votes(own)) / 2)
        if n_workers != 2 or prior.gold is not None or prior.tokens is not None:
            return answers
        spans = self.marked.scheme.spans(answers.path, answers.pointer)
        tied = self.marked.votes_for(spans) < 0.999 * self.marked.labels[spans.sequence]
        limited = np.minimum(answers.confidence, np.where(tied, MOST_TIED, 1.0))
        return replace(answers, confidence=limited)

    def claims(
        self, counts: ChainCounts, path: Codes, fitted: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return probabilities of tags, and of the spans of a path.

        They are more careful than the fit: parameters are expected ones, without a tag's own count.
        Labels of a task depend on each other, and nobody knows how far. The probabilities are the
        mean of two posteriors: n labels count as n, and as n / (1 + 0.5 (n - 1)). All workers of a
        task may share a misreading. Therefore the probability of a span with v of n votes, unless
        it is known, is 0.9 (0.8 c + 0.2 (v + 1) / (n + 2)), where the chains give c. Without any
        vote it is 0.3 times that.
        """
        data, pointer, scheme = self.data, self.data.token_pointer, self.data.tag_scheme
        if fitted is None:
            evidence = self._of_labels(np.log(expectation(counts.tags)))
        else:
            table = self.context.table
            evidence = self.kernels.evidence_without_own(self.labels, counts.tags, table, fitted)
        number = np.bincount(data.task, data.weight, data.n_tasks)
        share = 1 / (1 + DEPENDENCE * np.maximum(number - 1, 0.0))
        start, step = counts.expected()
        weighted = evidence * np.repeat(share, data.length)[:, None]
        both = [self._smooth(self._complete(own), start, step) for own in (evidence, weighted)]
        bold, shy = (span_confidence(scheme, pointer, path, one, step) for one in both)
        spans = scheme.spans(path, pointer)
        chain = (bold + shy) / 2
        votes = self.marked.votes_for(spans)
        share = (votes + 1) / (number[spans.sequence] + 2)
        careful = MOST * (MODEL * chain + (1 - MODEL) * share) * np.where(votes > 0, 1, UNMARKED)
        known = self.known[pointer[spans.sequence] + spans.start] >= 0
        confidence = np.where(known, chain, careful)
        return (both[0].marginals + both[1].marginals) / 2, confidence

    def _evidence(self, log_theta: Floats) -> Floats:
        return self._complete(self._of_labels(log_theta))

    def _of_labels(self, log_theta: Floats) -> Floats:
        n_tokens = int(self.data.token_pointer[-1])
        found: Floats = self.kernels.evidence(self.labels, log_theta, self.context.table, n_tokens)
        return found

    def _complete(self, evidence: Floats) -> Floats:
        """Add other evidence to that of labels, and make known tags certain."""
        if self.other is not None:
            evidence += self.other
        sure = self.known >= 0
        evidence[sure] = -np.inf
        evidence[sure, self.known[sure]] = 0.0
        return evidence

    def _smooth(self, evidence: Floats, start: Floats, step: Floats) -> Smoothed:
        found: Smoothed = self.kernels.smooth(evidence, self.data.token_pointer, start, step)
        return found

    # ---------------------------------------------------------------------------------- updates

    def _votes(self, otherwise: Floats | None = None) -> Floats:
        """Return the shares of the tags of each token; known tags are certain.

        Tokens without votes have the shares of all tokens, or those that are given ``otherwise``.
        """
        data = self.data
        shape = int(data.token_pointer[-1]), data.n_classes
        place = data.token * shape[1] + data.tags
        votes = np.bincount(place, data.token_weight, shape[0] * shape[1]).reshape(shape)
        if otherwise is None:
            otherwise = votes.sum(axis=0) / max(float(votes.sum()), TINY)
        total = votes.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, votes / np.maximum(total, TINY), otherwise)
        sure = self.known >= 0
        shares[sure] = 0.0
        shares[sure, self.known[sure]] = 1.0
        return np.asarray(shares)

    def counts_of(self, probas: Floats) -> ChainCounts:
        """Return the expected counts of independent tokens with these probabilities of tags."""
        begins = self.data.token_pointer[:-1][self.data.length > 0]
        is_first = np.zeros(len(probas), dtype=bool)
        is_first[begins] = True
        later = np.flatnonzero(~is_first)
        return self._counts(probas, probas[begins].sum(axis=0), probas[later - 1].T @ probas[later])

    def _counts(self, marginals: Floats, first: Floats, steps: Floats) -> ChainCounts:
        """Return expected counts with their priors."""
        prior, legal = self._prior(), self.data.tag_scheme.legal
        shape = (self.data.n_workers, *self.context.prior.shape)
        tags = self.kernels.counts(self.labels, marginals, self.context.table, shape)
        return ChainCounts(
            prior.tags + tags, prior.start + first * legal[-1], prior.step + steps * legal[:-1]
        )

    def _prior(self) -> ChainCounts:
        legal = self.data.tag_scheme.legal
        shape = (self.data.n_workers, *self.context.prior.shape)
        tags = np.broadcast_to(self.context.prior, shape)
        return ChainCounts(tags, np.where(legal[-1], STEP, 0.0), np.where(legal[:-1], STEP, 0.0))

    def _penalty(self, counts: ChainCounts, logs: ChainLogs) -> float:
        """Return what the objective loses by the distance of the parameters from their prior."""
        total = 0.0
        for own, prior, log in zip(counts, self._prior(), logs, strict=True):
            if not self.variational:
                total -= float((prior[prior > 0] * log[prior > 0]).sum())
                continue
            rows = np.atleast_2d(own) if own.ndim < 3 else own[None]
            before = np.atleast_2d(prior) if own.ndim < 3 else np.ascontiguousarray(prior)[None]
            each = np.atleast_2d(log) if own.ndim < 3 else log[None]
            for a, b, c in zip(rows, before, each, strict=True):
                allowed = b > 0 if own.ndim < 3 else ...
                total += divergence(a[allowed], b[allowed], c[allowed])
        return total


def outside_only(data: CrowdSequences, known: Longs) -> NDArray[np.bool_]:
    """Return (n_tokens, K) tags that are not answered: those of spans, where nobody marked any."""
    free = ~data.marked & (known < 0)
    return np.asarray(free[:, None] & (data.tag_scheme.type_of >= 0)[None, :])


def unknown_worker(counts: ChainCounts, context: Context) -> Floats:
    """Return (1, S, K, K) counts of a worker about whom nothing is known.

    The tags of all workers weigh as one label in addition to the prior.
    """
    pooled = (counts.tags - context.prior).sum(axis=0, keepdims=True)
    return np.asarray(context.prior + pooled / np.maximum(pooled.sum(axis=-1, keepdims=True), 1.0))


def known_of(problem: SequenceProblem) -> Longs:
    """Return the known tags of all tokens, -1 where unknown."""
    if problem.prior.gold is not None:
        return problem.prior.gold
    return np.full(int(problem.data.token_pointer[-1]), -1, dtype=np.int64)


@dataclass(eq=False, repr=False, kw_only=True)
class ChainMethod(Aggregator):
    """Base of the methods with hidden chains; a method says what a worker's tag depends on."""

    variational: bool = True
    max_iter: int = 60
    tol: float = 1e-3

    takes: ClassVar[str] = "sequences"
    # A repeated tag is judged by its twin, a heavy one only by other tags.
    promises: ClassVar[Tags] = Tags(monotone=True, likelihood=True, exact_replication=False)
    saves: ClassVar[dict[str, Saved]] = {
        "tag_counts_": SavedArray("workers contexts K K", "positive"),
        "start_counts_": SavedArray("K", "amount"),
        "step_counts_": SavedArray("K K", "amount"),
    }

    limits: ClassVar[Limits] = {"variational": Flag()}

    @staticmethod
    def _context(scheme: TagScheme) -> Context:
        raise TypeError("A method with chains must define _context.")

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        scheme = TagScheme(self.scheme_, tuple(self.classes_.tolist()))
        return {
            "workers": sizes["J"] + 1,  # the last row is that of an unknown worker
            "contexts": len(self._context(scheme).prior),
        }

    def _chains(self, problem: SequenceProblem) -> TagChains:
        data = problem.data
        require_few_tags(data)
        context = self._context(data.tag_scheme)
        known, other = known_of(problem), problem.prior.evidence(data)
        return TagChains(data, known, context, self.variational, other)

    def _fit(self, problem: SequenceProblem) -> Fit:
        model = self._chains(problem)
        run = model.run(self.max_iter, self.tol)
        answers = model.answers(run.counts, run.posterior.marginals)
        worth = WorkerSpans.of(problem.data, answers)
        return Fit(
            model.with_doubt(answers, problem.prior, problem.data.n_workers),
            worth.accuracy,
            worth.error,
            n_iter=run.n_iter,
            converged=run.converged,
            history=run.history,
            extra={**run.counts.published(model.context), **worth.published()},
        )

    def _fitted(self) -> ChainCounts:
        return ChainCounts(self.tag_counts_, self.start_counts_, self.step_counts_)

    def _predict(self, problem: SequenceProblem) -> SequenceAnswers:
        model = self._chains(problem)
        answers = model.answers(self._fitted())
        return model.with_doubt(answers, problem.prior, len(self.workers_))

    def _log_likelihood(self, problem: SequenceProblem) -> float:
        logs = self._fitted().logs(variational=self.variational)
        return self._chains(problem).posterior(logs).log_evidence
