"""Scores of spans: exact limits and types, and overlaps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

Span = tuple[Any, int, int, str]  # task, start, end, type


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
