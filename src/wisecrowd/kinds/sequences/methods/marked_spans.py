"""Spans that workers marked: votes, answers bound to them, and what spans and workers are worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Codes, Floats, Longs, Mask
from wisecrowd.kinds.sequences.answers import SequenceAnswers
from wisecrowd.kinds.sequences.container import CrowdSequences
from wisecrowd.kinds.sequences.kernels import Smoothed
from wisecrowd.kinds.sequences.metrics import SPAN_ERRORS, compare_spans
from wisecrowd.kinds.sequences.tag_scheme import Spans, TagScheme

DECIMALS = 9  # of votes and overlaps that are compared
TINY = 1e-300
NONE = np.iinfo(np.int64).max  # a rank worse than any


@dataclass(frozen=True, eq=False)
class MarkedSpans:
    """The different spans that workers marked, by task and start; they may overlap.

    Attributes
    ----------
    scheme : TagScheme
    pointer : (n_tasks + 1,) int64
        Tokens of the tasks in one list.
    spans : Spans
        Their sequences are the tasks.
    votes : (n_spans,) float64
        Labels with each span, by weight. Labels without weight mark nothing.
    labels : (n_tasks,) float64
        Labels of each task, by weight.
    """

    scheme: TagScheme
    pointer: Longs
    spans: Spans
    votes: Floats
    labels: Floats

    @classmethod
    def of(cls, data: CrowdSequences) -> MarkedSpans:
        """Count the labels with each span.

        Examples
        --------
        >>> tags = ["B-PER I-PER O", "B-PER I-PER O", "B-PER O O"]
        >>> marked = MarkedSpans.of(CrowdSequences.from_arrays(["s"] * 3, [1, 2, 3], tags))
        >>> marked.spans.end.tolist(), marked.votes.tolist()
        ([1, 2], [1.0, 2.0])
        """
        scheme, pointer = data.tag_scheme, data.token_pointer
        weight = data.weights
        given = scheme.spans(data.tags, data.pointer)
        counted = weight[given.sequence] > 0
        given = Spans(*(column[counted] for column in given))
        task = given._replace(sequence=data.task[given.sequence].astype(np.int64))
        codes = _codes(task, pointer, len(scheme.types))
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        return cls(
            scheme, pointer, Spans(*(column[first] for column in task)),
            _sums(inverse.ravel(), weight[given.sequence], len(first)),
            _sums(data.task, weight, data.n_tasks),
        )  # fmt: skip

    def votes_for(self, spans: Spans) -> Floats:
        """Return the votes for each of some spans; 0 for one that nobody marked."""
        if len(self.votes) == 0:
            return np.zeros(len(spans.start))
        n_types = len(self.scheme.types)
        known, wanted = (_codes(one, self.pointer, n_types) for one in (self.spans, spans))
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[place] == wanted, self.votes[place], 0.0)

    def bind(self, path: Codes, known: Longs) -> Codes:
        """Return tags of BIO, of which every span was marked by a worker or is known.

        A span that nobody marked gives way to the marked span with the most votes that overlaps it
        and no other answer; of equally many votes, that with the larger overlap (intersection over
        union), then that of the same type, then of the type that is marked more often, then the
        first. Without such a span it is dropped.

        Parameters
        ----------
        path : (n_tokens,) codes
            Legal tags.
        known : (n_tokens,) int64
            Codes of known tags, -1 where unknown.
        """
        answers = self.scheme.spans(path, self.pointer)
        begin = self.pointer[answers.sequence] + answers.start
        kept = (self.votes_for(answers) > 0) | (known[begin] >= 0)
        if kept.all():
            return path
        taken = np.zeros(len(path), dtype=bool)
        taken[tokens_of(*_limits(answers, self.pointer, kept))[1]] = True
        chosen = self._replacements(answers, ~kept, taken)
        final = path.copy()
        final[tokens_of(*_limits(answers, self.pointer, ~kept))[1]] = 0  # outside
        first, last = _limits(self.spans, self.pointer, chosen)
        order = np.argsort(first)
        final[tokens_of(first[order], last[order])[1]] = self.scheme.tags_of(
            self.spans.kind[chosen][order], (last - first)[order]
        )
        return final

    def _replacements(self, answers: Spans, lost: Mask, taken: Mask) -> Longs:
        """Return the marked spans that replace lost answers, and do not touch taken tokens.

        Each is the best among all that compete with it: those for the same answer, and those that
        overlap it. Every round settles the best pairs of an answer and a marked span, as taking
        them one by one in the order of their ranks would.
        """
        pairs = self._pairs(answers, lost, taken)
        answer, span, rank = (column[np.argsort(pairs[2])] for column in pairs)
        settled: list[Longs] = []
        while len(rank):
            row, token = tokens_of(*_limits(self.spans, self.pointer, span))
            least, own = np.full(len(taken), NONE), np.full(len(lost), NONE)
            np.minimum.at(least, token, rank[row])
            np.minimum.at(own, answer, rank)
            rival = np.full(len(rank), NONE)
            np.minimum.at(rival, row, least[token])
            wins = (rival == rank) & (own[answer] == rank)
            settled.append(span[wins])
            taken[token[wins[row]]] = True
            done = np.zeros(len(lost), dtype=bool)
            done[answer[wins]] = True
            free = ~done[answer] & ~_touched(row, token, taken, len(rank))
            answer, span, rank = answer[free], span[free], rank[free]
        return np.concatenate([np.zeros(0, dtype=np.int64), *settled])

    def _pairs(self, answers: Spans, lost: Mask, taken: Mask) -> tuple[Longs, Longs, Longs]:
        """Return lost answers, free marked spans that overlap them, and the ranks of the pairs."""
        cover = np.full(len(taken), -1, dtype=np.int64)
        number = np.flatnonzero(lost)
        row, token = tokens_of(*_limits(answers, self.pointer, lost))
        cover[token] = number[row]
        first, last = _limits(self.spans, self.pointer)
        row, token = tokens_of(first, last)
        free = ~_touched(row, token, taken, len(first))
        met = (cover[token] >= 0) & free[row]
        pair, common = np.unique(row[met] * len(lost) + cover[token[met]], return_counts=True)
        span, answer = pair // max(len(lost), 1), pair % max(len(lost), 1)
        begin, end = _limits(answers, self.pointer)
        union = (last - first)[span] + (end - begin)[answer] - common
        kind = self.spans.kind[span]
        often = np.bincount(self.spans.kind, self.votes, len(self.scheme.types))
        keys = (
            answer, kind, last[span], first[span], -often[kind].round(DECIMALS),
            kind != answers.kind[answer], -(common / union).round(DECIMALS),
            -self.votes[span].round(DECIMALS),
        )  # fmt: skip
        rank = np.empty(len(pair), dtype=np.int64)
        rank[np.lexsort(keys)] = np.arange(len(pair))
        return answer, span, rank


def tokens_of(first: Longs, last: Longs) -> tuple[Longs, Longs]:
    """Return the tokens from ``first`` to before ``last`` of each row, and their rows.

    Examples
    --------
    >>> [one.tolist() for one in tokens_of(np.array([4, 0]), np.array([6, 1]))]
    [[0, 0, 1], [4, 5, 0]]
    """
    size = last - first
    row = np.repeat(np.arange(len(size)), size)
    return row, np.arange(len(row)) + np.repeat(first - (np.cumsum(size) - size), size)


def _touched(row: Longs, token: Longs, taken: Mask, n_rows: int) -> Mask:
    """Return (n_rows,) whether any of a row's tokens is taken."""
    return np.asarray(np.bincount(row, taken[token], n_rows) > 0)


def _sums(row: NDArray[np.integer[Any]], weight: Floats, n_rows: int) -> Floats:
    """Return (n_rows,) sums of weights."""
    return np.asarray(np.bincount(row, weight, n_rows), dtype=np.float64)


def _limits(
    spans: Spans, pointer: Longs, which: Mask | Longs | slice = slice(None)
) -> tuple[Longs, Longs]:
    """Return the limits of some spans in the list of all tokens."""
    base = pointer[spans.sequence[which]]
    return base + spans.start[which], base + spans.end[which]


def _codes(spans: Spans, pointer: Longs, n_types: int) -> Longs:
    """Return a number for each task, limits and type, in the order of first tokens."""
    width = int(np.diff(pointer).max(initial=0)) + 1
    place = (pointer[spans.sequence] + spans.start) * width + spans.end - spans.start
    return np.asarray(place * max(n_types, 1) + spans.kind)


def span_confidence(
    scheme: TagScheme, pointer: Longs, path: Codes, posterior: Smoothed, step: Floats
) -> Floats:
    """Return the probability of each span of a path: that it begins, goes on and ends so.

    It is the probability of the first tag, times those of the further tags, each given the tag
    before, times the probability that the next token does not go on with the span.
    """
    spans = scheme.spans(path, pointer)
    begin, size = pointer[spans.sequence] + spans.start, spans.end - spans.start
    log = np.log(np.maximum(posterior.marginals[begin, path[begin]], TINY))
    inner, token = tokens_of(begin + 1, begin + size)
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
    before: NDArray[np.integer[Any]], token: Longs, posterior: Smoothed, step: Floats
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
        weight = data.weights
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
