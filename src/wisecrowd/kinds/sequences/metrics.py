"""Scores of spans, and how found spans differ from the true ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Longs
from wisecrowd.kinds.sequences.tag_scheme import Spans, TagScheme

Span = tuple[Any, int, int, str]  # task, start, end, type
SPAN_ERRORS = ("wrong_type", "too_long", "too_short", "split", "shifted", "phantom")
EXACT = -1  # of a span that is right


def span_table_scores(truth: Iterable[Span], found: Iterable[Span]) -> dict[str, float]:
    """Return precision, recall and F1 of spans, and relaxed F1.

    A span is right if its limits and type are; in the relaxed score, if it overlaps a span of its
    type. Without any found and true spans the scores are 1.

    Parameters
    ----------
    truth, found : spans
        Each is (task, start, end, type), with the end exclusive.

    Examples
    --------
    >>> truth = [("s", 0, 2, "PER"), ("s", 5, 6, "LOC")]
    >>> scores = span_table_scores(truth, [("s", 0, 2, "PER"), ("s", 5, 7, "LOC")])
    >>> scores["span_f1"], scores["relaxed_f1"]
    (0.5, 1.0)
    """
    wanted, given = set(truth), set(found)
    right, either = len(wanted & given), len(wanted) + len(given)
    near = _touching(given, wanted) + _touching(wanted, given)
    return {
        "span_f1": 2 * right / either if either else 1.0,
        "span_precision": right / len(given) if given else float(not wanted),
        "span_recall": right / len(wanted) if wanted else float(not given),
        "relaxed_f1": near / either if either else 1.0,
    }


def _touching(spans: set[Span], others: set[Span]) -> int:
    """Return how many spans overlap one of the others with the same task and type."""
    places: dict[tuple[Any, str], list[tuple[int, int]]] = defaultdict(list)
    for task, start, end, kind in others:
        places[task, kind].append((start, end))
    return sum(
        any(start < stop and begin < end for begin, stop in places[task, kind])
        for task, start, end, kind in spans
    )


def compare_spans(found: Spans, wanted: Spans, length: Longs, source: Longs | None = None) -> Longs:
    """Return how each found span differs from the wanted ones of its sequence.

    -1 means not at all; other codes are places in ``SPAN_ERRORS``: the limits of a wanted span with
    another type, a wanted span and more, part of one, one of several parts of one, an overlap, or
    nothing wanted there.

    Parameters
    ----------
    found, wanted : Spans
        Sorted by sequence and start, without overlaps, except that ``found`` may contain the spans
        of several workers one after the other.
    length : (n_sequences,)
    source : (n_found,), optional
        The annotation of each found span, if there are several of a sequence.

    Examples
    --------
    >>> def spans(*rows):
    ...     return Spans(*(np.array(column) for column in zip(*rows)))
    >>> wanted = spans((0, 0, 2, 0), (0, 5, 6, 1), (0, 8, 10, 1))
    >>> found = spans((0, 0, 2, 0), (0, 4, 6, 1), (0, 6, 7, 0), (0, 9, 10, 1))
    >>> [SPAN_ERRORS[code] if code >= 0 else "right" for code in compare_spans(
    ...     found, wanted, np.array([10])).tolist()]
    ['right', 'too_long', 'phantom', 'too_short']
    """
    start, end = _limits(found, length)
    begin, stop = _limits(wanted, length)
    if len(begin) == 0:
        return np.full(len(start), SPAN_ERRORS.index("phantom"), dtype=np.int64)
    near = touched_spans(found, wanted, length)
    at, touches = np.maximum(near, 0), near >= 0
    several = touches & (np.searchsorted(begin, end, side="left") - near > 1)
    same = touches & (begin[at] == start) & (stop[at] == end)
    covers = touches & (start <= begin[at]) & (end >= stop[at]) & ~same
    inside = touches & (start >= begin[at]) & (end <= stop[at]) & ~same
    code = np.full(len(start), SPAN_ERRORS.index("phantom"), dtype=np.int64)
    code[touches] = SPAN_ERRORS.index("shifted")
    code[covers | several] = SPAN_ERRORS.index("too_long")
    code[inside] = SPAN_ERRORS.index("too_short")
    # Neighbouring parts of the same wanted span.
    own = found.sequence if source is None else source
    twin = inside[1:] & inside[:-1] & (at[1:] == at[:-1]) & (own[1:] == own[:-1])
    code[np.append(False, twin) | np.append(twin, False)] = SPAN_ERRORS.index("split")
    code[same] = np.where(found.kind[same] == wanted.kind[at[same]], EXACT,
                          SPAN_ERRORS.index("wrong_type"))  # fmt: skip
    return code


def touched_spans(found: Spans, wanted: Spans, length: Longs) -> Longs:
    """Return the first wanted span that shares a token with each found one; -1 without any.

    Examples
    --------
    >>> def spans(*rows):
    ...     return Spans(*(np.array(column) for column in zip(*rows)))
    >>> wanted = spans((0, 0, 2, 0), (0, 5, 6, 1))
    >>> touched_spans(spans((0, 1, 3, 0), (0, 3, 5, 0)), wanted, np.array([8])).tolist()
    [0, -1]
    """
    start, end = _limits(found, length)
    begin, stop = _limits(wanted, length)
    near = np.searchsorted(stop, start, side="right")  # the first that ends after the start
    at = np.minimum(near, max(len(begin) - 1, 0))
    inside = near < len(begin)
    return np.where(inside, np.where(begin[at] < end, at, -1) if len(begin) else -1, -1)


def _limits(spans: Spans, length: Longs) -> tuple[Longs, Longs]:
    """Return the limits of spans in one list of all tokens."""
    base = np.append(0, np.cumsum(length))[spans.sequence]
    return base + spans.start, base + spans.end


def span_counts(
    scheme: TagScheme, truth: NDArray[Any], tags: NDArray[Any], pointer: Longs, *, relaxed: bool
) -> tuple[int, int, int]:
    """Return the numbers of right, found and wanted spans, where the truth is known.

    Parameters
    ----------
    scheme : TagScheme
    truth, tags : (n_tokens,) codes
        -1 in the truth means unknown; sequences are known as a whole.
    pointer : (n_sequences + 1,)
    relaxed : bool
        Whether a found span is right if it overlaps a wanted span of its type.
    """
    known = truth >= 0
    length = np.bincount(np.searchsorted(pointer, np.flatnonzero(known), side="right") - 1,
                         minlength=len(pointer) - 1)  # fmt: skip
    ends = np.append(0, np.cumsum(length))
    wanted, found = scheme.spans(truth[known], ends), scheme.spans(tags[known], ends)
    if relaxed:
        right = int(_overlap(found, wanted, length).sum())
    else:
        right = int((compare_spans(found, wanted, length) == EXACT).sum())
    return right, len(found.start), len(wanted.start)


def _overlap(found: Spans, wanted: Spans, length: Longs) -> NDArray[np.bool_]:
    """Return whether each found span shares a token with a wanted span of its type."""
    base = np.append(0, np.cumsum(length))
    covered = np.full(int(base[-1]), -1, dtype=np.int64)
    begin, size = base[wanted.sequence] + wanted.start, wanted.end - wanted.start
    before = np.append(0, np.cumsum(size))
    covered[np.repeat(begin - before[:-1], size) + np.arange(before[-1])] = np.repeat(
        wanted.kind, size
    )
    begin, size = base[found.sequence] + found.start, found.end - found.start
    before = np.append(0, np.cumsum(size))
    token = np.repeat(begin - before[:-1], size) + np.arange(before[-1])
    hit = covered[token] == np.repeat(found.kind, size)
    return np.bincount(np.repeat(np.arange(len(size)), size), hit, len(size)) > 0


def span_scores(
    scheme: TagScheme, truth: NDArray[Any], tags: NDArray[Any], pointer: Longs
) -> dict[str, float]:
    """Return precision, recall and F1 of spans, relaxed F1, and the accuracy of tags.

    A span is right if its limits and type are; in the relaxed score, if it overlaps a span of its
    type. Without any found and wanted spans the scores are 1.
    """
    right, found, wanted = span_counts(scheme, truth, tags, pointer, relaxed=False)
    near, _, _ = span_counts(scheme, truth, tags, pointer, relaxed=True)
    back, _, _ = span_counts(scheme, tags, truth, pointer, relaxed=True)
    known = truth >= 0
    either = found + wanted
    return {
        "span_f1": 2 * right / either if either else 1.0,
        "span_precision": right / found if found else float(not wanted),
        "span_recall": right / wanted if wanted else float(not found),
        "relaxed_f1": (near + back) / either if either else 1.0,
        "token_accuracy": float(np.mean(truth[known] == tags[known])),
    }
