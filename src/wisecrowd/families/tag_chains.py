r"""Hidden chains of tags: model, updates and objective of the methods for sequences.

.. math::
    P(z, y) = \pi_{z_1} \prod_t T_{z_{t-1} z_t} \prod_{jt} \theta_j[c(y_{j,t-1}, z_t), z_t, y_{jt}]

The context :math:`c` says what a worker's tag depends on besides the true tag.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.sequence_answers import SequenceAnswers
from wisecrowd.core.sequences import CrowdSequences
from wisecrowd.core.span_errors import SPAN_ERRORS, compare_spans
from wisecrowd.core.tag_scheme import TagScheme
from wisecrowd.inference.dirichlet import divergence, expectation, expected_log
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.kernels import kernels_for
from wisecrowd.kernels.tag_chains.reference import Smoothed, TokenLabels

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
RIGHT, WRONG, ILLEGAL = 1.1, 0.1, 1e-3  # pseudo-counts of a worker's tags
TINY = 1e-300
DEPENDENCE = 0.5  # between labels of a task, in the more careful of two posteriors
SHARED = 0.02  # probability that all workers of a task misread a span together
STEP = 0.1  # pseudo-count of each legal step
COPIES = 6  # of the tables of workers and tokens that are in memory at once
MOST_STEPS = 5e9  # from tag to tag in all tokens; a pass takes about two nanoseconds each
STEPS = 500  # from tag to tag, that take the time of one annotation
MANY_TAGS = 40  # above, a worker's previous tag counts as outside, same type or other type


class Context(NamedTuple):
    """What a worker's tag depends on besides the true tag.

    Attributes
    ----------
    table : (K + 1, K) int64
        The context of a previous tag (the last row: the start) and a true tag.
    prior : (S, K, K) float64
        Pseudo-counts of tags, by context and true tag.
    """

    table: Ints
    prior: Floats


def no_context(scheme: TagScheme) -> Context:
    """Return the context of workers whose tags depend on the true tag only."""
    n = len(scheme.tags)
    prior = np.full((1, n, n), WRONG) + (RIGHT - WRONG) * np.eye(n)
    return Context(np.zeros((n + 1, n), dtype=np.int64), prior)


def previous_tag(scheme: TagScheme) -> Context:
    """Return the context of workers whose tags depend on their own previous tag.

    With many tags, the previous tag is outside, of the type of the true tag, or of another type.
    """
    n = len(scheme.tags)
    plain = no_context(scheme).prior[0]
    if n <= MANY_TAGS:
        prior = np.where(scheme.legal[:, None, :], plain[None], ILLEGAL)
        return Context(np.repeat(np.arange(n + 1)[:, None], n, axis=1), prior)
    before = np.append(scheme.type_of, -1)
    table = np.where(before[:, None] == scheme.type_of, 1, 2)
    table[before < 0] = 0
    inside = np.flatnonzero(before >= 0)
    of_type = np.zeros((int(before.max()) + 2, n), dtype=np.int64)  # the last row: no type
    np.add.at(of_type, before[inside], scheme.legal[inside])
    same = of_type[scheme.type_of]
    ways = (scheme.legal[before < 0].sum(axis=0)[None], same, of_type.sum(axis=0) - same)
    prior = np.empty((3, n, n))
    for s, way in enumerate(ways):  # illegal is what every previous tag of this context forbids
        forbidden = (way == 0) & (way > 0).any(axis=1, keepdims=True)
        prior[s] = np.where(forbidden, ILLEGAL, plain)
    return Context(table.astype(np.int64), prior)


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
    known: Ints
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

        Tokens that nobody marked stay outside of all spans.

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
        path = self.kernels.best_path(evidence, pointer, logs.start, logs.step)
        marginals, confidence = self.claims(counts, path, fitted)
        return SequenceAnswers(pointer, path, marginals, confidence)

    def claims(
        self, counts: ChainCounts, path: NDArray[np.int32], fitted: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return probabilities of tags, and of the spans of a path.

        They are more careful than the fit: parameters are expected ones, without a tag's own count.
        Labels of a task depend on each other, and nobody knows how far. The probabilities are the
        mean of two posteriors: n labels count as n, and as n / (1 + 0.5 (n - 1)). All workers of a
        task may share a misreading, so no span is more probable than 0.98, unless it is known.
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
        known = self.known[pointer[spans.sequence] + spans.start] >= 0
        limit = np.where(known, 1.0, 1 - SHARED)
        return (both[0].marginals + both[1].marginals) / 2, limit * (bold + shy) / 2

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

    def _votes(self) -> Floats:
        """Return the shares of the tags of each token; known tags are certain."""
        data = self.data
        shape = int(data.token_pointer[-1]), data.n_classes
        place = data.token * shape[1] + data.tags
        votes = np.bincount(place, data.token_weight, shape[0] * shape[1]).reshape(shape)
        overall = votes.sum(axis=0) / max(float(votes.sum()), TINY)
        total = votes.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, votes / np.maximum(total, TINY), overall)
        sure = self.known >= 0
        shares[sure] = 0.0
        shares[sure, self.known[sure]] = 1.0
        return np.asarray(shares)

    def _vote_steps(self, votes: Floats) -> tuple[Floats, Floats]:
        """Return expected first tags and steps, as if tokens were independent."""
        pointer = self.data.token_pointer
        begins = pointer[:-1][self.data.length > 0]
        is_first = np.zeros(len(votes), dtype=bool)
        is_first[begins] = True
        later = np.flatnonzero(~is_first)
        return votes[begins].sum(axis=0), votes[later - 1].T @ votes[later]

    def counts_of(self, probas: Floats) -> ChainCounts:
        """Return the expected counts of independent tokens with these probabilities of tags."""
        return self._counts(probas, *self._vote_steps(probas))

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


def outside_only(data: CrowdSequences, known: Ints) -> NDArray[np.bool_]:
    """Return (n_tokens, K) tags that are not answered: those of spans, where nobody marked any."""
    free = ~data.marked & (known < 0)
    return np.asarray(free[:, None] & (data.tag_scheme.type_of >= 0)[None, :])


def unknown_worker(counts: ChainCounts, context: Context) -> Floats:
    """Return (1, S, K, K) counts of a worker about whom nothing is known.

    The tags of all workers weigh as one label in addition to the prior.
    """
    pooled = (counts.tags - context.prior).sum(axis=0, keepdims=True)
    return np.asarray(context.prior + pooled / np.maximum(pooled.sum(axis=-1, keepdims=True), 1.0))


def span_confidence(
    scheme: TagScheme, pointer: Ints, path: NDArray[np.int32], posterior: Smoothed, step: Floats
) -> Floats:
    """Return the probability of each span of a path: that it begins, goes on and ends so.

    It is the probability of the first tag, times those of the further tags, each given the tag
    before, times the probability that the next token does not go on with the span.
    """
    spans = scheme.spans(path, pointer)
    begin, size = pointer[spans.sequence] + spans.start, spans.end - spans.start
    log = np.log(np.maximum(posterior.marginals[begin, path[begin]], TINY))
    inner = np.repeat(np.arange(len(size)), size - 1)
    before = np.append(0, np.cumsum(size - 1))
    token = np.repeat(begin + 1 - before[:-1], size - 1) + np.arange(before[-1])
    chance = _next_tag(path[token - 1], token, posterior, step)
    own = chance[np.arange(len(token)), path[token]]
    log += np.bincount(inner, np.log(np.maximum(own, TINY)), len(size))
    follows = np.flatnonzero(begin + size < pointer[spans.sequence + 1])
    after = (begin + size)[follows]
    chance = _next_tag(path[after - 1], after, posterior, step)
    goes_on = (scheme.type_of[None, :] == spans.kind[follows, None]) & ~scheme.begins[None, :]
    log[follows] += np.log(np.maximum(1 - (chance * goes_on).sum(axis=1), TINY))
    return np.asarray(np.clip(np.exp(log), 0.0, 1.0))


def _next_tag(
    before: NDArray[np.integer[Any]], token: Ints, posterior: Smoothed, step: Floats
) -> Floats:
    """Return the (n, K) probabilities of the tags of tokens, given the tags before them."""
    weight = step[before] * posterior.message[token]
    return np.asarray(weight / np.maximum(weight.sum(axis=1, keepdims=True), TINY))


class WorkerSpans(NamedTuple):
    """What each worker is worth against the answers.

    Attributes
    ----------
    accuracy, error : (n_workers,)
        Expected share of right tags, and its standard error over sequences.
    precision, recall : (n_workers,)
        Of spans; 1 without any.
    errors : (n_workers, n_kinds)
        Weight of the spans with each of the errors in ``SPAN_ERRORS``.
    """

    accuracy: Floats
    error: Floats
    precision: Floats
    recall: Floats
    errors: Floats

    @classmethod
    def of(cls, data: CrowdSequences, answers: SequenceAnswers) -> WorkerSpans:
        """Compare the workers' tags with the answers."""
        n, scheme = data.n_workers, data.tag_scheme
        weight = np.ones(data.n_annotations) if data.weight is None else data.weight
        size = np.diff(data.pointer)
        sequence = np.repeat(np.arange(data.n_annotations), size)
        chance = answers.marginals[data.token, data.tags]
        right = np.bincount(sequence, chance, data.n_annotations)  # per annotation
        total = np.bincount(data.worker, weight * size, n)
        accuracy = np.bincount(data.worker, weight * right, n) / np.maximum(total, TINY)
        # Tags of one sequence depend on each other, so the error is one over sequences.
        away = weight * (right - accuracy[data.worker] * size)
        error = np.sqrt(np.bincount(data.worker, away**2, n)) / np.maximum(total, TINY)
        consensus = scheme.spans(answers.path, data.token_pointer)
        own = scheme.spans(data.tags, data.pointer)
        worker, each = data.worker[own.sequence], weight[own.sequence]
        of_tasks = own._replace(sequence=data.task[own.sequence].astype(np.int64))
        code = compare_spans(of_tasks, consensus, data.length, own.sequence)
        kinds = len(SPAN_ERRORS) + 1
        cells: Floats = np.bincount(worker * kinds + code + 1, each, n * kinds).astype(np.float64)
        cells = cells.reshape(n, kinds)
        per_task = np.bincount(consensus.sequence, minlength=data.n_tasks)
        wanted = np.bincount(data.worker, weight * per_task[data.task], n).astype(np.float64)
        return cls(
            np.clip(np.where(total > 0, accuracy, 1 / data.n_classes), 0.0, 1.0), error,
            _share(cells[:, 0], cells.sum(axis=1)), _share(cells[:, 0], wanted), cells[:, 1:],
        )  # fmt: skip

    def published(self) -> dict[str, Any]:
        """Return the attributes besides the accuracy."""
        return {
            "span_precision": self.precision, "span_recall": self.recall,
            "span_errors": self.errors,
        }  # fmt: skip


def _share(part: Floats, whole: Floats) -> Floats:
    """Return part / whole, between 0 and 1; 1 if the whole is nothing."""
    return np.where(whole > 0, np.clip(part / np.maximum(whole, TINY), 0.0, 1.0), 1.0)
