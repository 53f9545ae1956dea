"""SequenceAnswers: the tags of every token, and the spans that they form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.answers import Answers, Columns, Learned, agreement_columns
from wisecrowd.core.one_worker import capped_rows
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.sequence_truth import known_tags
from wisecrowd.core.span_errors import SPAN_ERRORS, span_scores
from wisecrowd.core.tag_scheme import Spans, TagScheme

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class SequenceAnswers(Answers):
    """One tag per token, the probability of every tag, and the probability of every span.

    Attributes
    ----------
    pointer : (n_tasks + 1,) int64
        Tokens of task ``i`` are ``pointer[i]`` to ``pointer[i + 1]``.
    path : (n_tokens,) int32
        Codes of the most probable legal tags.
    marginals : (n_tokens, n_classes) float64
    confidence : (n_spans,) float64
        Probability of each span of the path, in the order of tasks and tokens.
    """

    pointer: Ints
    path: Codes
    marginals: Floats
    confidence: Floats

    shown: ClassVar[tuple[str, ...]] = ("start", "end", "label", "confidence")
    saves: ClassVar[Mapping[str, Saved]] = {
        "tags_": SavedArray("N", "label"),
        "marginals_": SavedArray("* K", "distribution"),
        "path_": SavedArray("*", "count"),
        "span_confidence_": SavedArray("*", "probability"),
        "n_spans_": SavedArray("N", "count"),
        "token_confidence_": SavedArray("N", "probability"),
        "worker_accuracy_": SavedArray("J", "probability"),
        "worker_accuracy_error_": SavedArray("J", "amount"),
        "span_precision_": SavedArray("J", "probability"),
        "span_recall_": SavedArray("J", "probability"),
        "span_errors_": SavedArray(f"J {len(SPAN_ERRORS)}", "amount"),
    }

    @classmethod
    def of_fit(cls, learned: Learned, rows: NDArray[np.integer[Any]]) -> Self:
        """Return the answers that a fit has published, for some of its tasks."""
        token, pointer = _part(learned["length_"], rows)
        span, _ = _part(learned["n_spans_"], rows)
        return cls(
            pointer, learned["path_"][token], learned["marginals_"][token],
            learned["span_confidence_"][span],
        )  # fmt: skip

    def capped(self, most: float) -> Self:
        """Return the answers without a tag or span that is more probable than ``most``."""
        return replace(
            self, marginals=capped_rows(self.marginals, most),
            confidence=np.minimum(self.confidence, most),
        )  # fmt: skip

    def attributes(self, known: Learned) -> dict[str, Any]:
        """Return tags, their probabilities, and the probabilities of spans."""
        names = known["classes_"]
        scheme = TagScheme(known["scheme_"], tuple(names.tolist()))
        spans, length = scheme.spans(self.path, self.pointer), np.diff(self.pointer)
        chosen = self.marginals[np.arange(len(self.path)), self.path]
        task = np.repeat(np.arange(len(length)), length)
        mean = np.bincount(task, chosen, len(length)) / np.maximum(length, 1)
        return {
            "tags_": joined(names[self.path].tolist(), self.pointer),
            "path_": self.path,
            "marginals_": self.marginals,
            "span_confidence_": self.confidence,
            "n_spans_": np.bincount(spans.sequence, minlength=len(length)),
            "token_confidence_": np.where(length > 0, np.clip(mean, 0.0, 1.0), 1.0),
        }

    def score(self, truth: Any, data: Any, known: Learned) -> float:
        """Return F1 of spans with the right limits and type, on the tasks with a truth."""
        wanted = known_tags(truth, data)
        return span_scores(data.tag_scheme, wanted, self.path, self.pointer)["span_f1"]

    @classmethod
    def main_columns(cls, learned: Learned) -> Columns:
        """Return one row per span: task, limits, type, text if it is known, and confidence."""
        spans, scheme = fitted_spans(learned)
        base = np.append(0, np.cumsum(learned["length_"] + 1))[spans.sequence]
        start, end = (learned["offset_"][base + limit] for limit in (spans.start, spans.end))
        types = np.array([*scheme.types, None], dtype=object)
        return {
            "task": learned["tasks_"][spans.sequence], "start": start, "end": end,
            "label": types[spans.kind],
            **({"text": span_texts(learned, spans)} if "words_" in learned else {}),
            "confidence": learned["span_confidence_"],
        }  # fmt: skip

    @classmethod
    def task_columns(cls, learned: Learned) -> Columns:
        """Return the tags of each task as text, the mean probability of its tags, and its spans."""
        return {
            "tags": learned["tags_"], "confidence": learned["token_confidence_"],
            "n_spans": learned["n_spans_"],
        }  # fmt: skip

    @classmethod
    def worker_columns(cls, learned: Learned) -> Columns:
        """Return agreement of tags, precision and recall of spans, and counts of their errors."""
        return {
            **agreement_columns(learned),
            "span_precision": learned["span_precision_"],
            "span_recall": learned["span_recall_"],
            **dict(zip(SPAN_ERRORS, learned["span_errors_"].T, strict=True)),
        }

    @classmethod
    def counts(cls, learned: Learned) -> dict[str, int]:
        """Return the number of spans."""
        return {"spans": int(learned["n_spans_"].sum())}

    @classmethod
    def fault(cls, learned: Learned) -> str:
        """Describe an inconsistency between tokens, spans and offsets, or return ""."""
        n_tokens, classes = int(learned["length_"].sum()), len(learned["classes_"])
        path = learned["path_"]
        if len(path) != n_tokens or len(learned["marginals_"]) != n_tokens:
            return "path_ and marginals_ do not have one entry per token"
        if len(path) and int(path.max()) >= classes:
            return "path_ holds something else than codes of classes_"
        spans, _ = fitted_spans(learned)
        count = np.bincount(spans.sequence, minlength=len(learned["length_"]))
        if not np.array_equal(count, learned["n_spans_"]):
            return "n_spans_ does not count the spans of path_"
        if len(learned["span_confidence_"]) != len(spans.start):
            return "span_confidence_ does not have one entry per span"
        if len(learned["offset_"]) != n_tokens + len(count):
            return "offset_ does not hold the limits of all tokens"
        if len(learned.get("words_", path)) != n_tokens:
            return "words_ does not have one entry per token"
        return ""


def fitted_spans(learned: Learned) -> tuple[Spans, TagScheme]:
    """Return the spans of the fitted tags, and their scheme."""
    scheme = TagScheme(learned["scheme_"], tuple(learned["classes_"].tolist()))
    pointer = np.append(0, np.cumsum(learned["length_"]))
    return scheme.spans(learned["path_"], pointer), scheme


def span_texts(learned: Learned, spans: Spans) -> NDArray[Any]:
    """Return the text of each span of a fit; empty where it is not known."""
    base = np.append(0, np.cumsum(learned["length_"]))[spans.sequence]
    words, between = learned["words_"].tolist(), learned["joined_by_"]
    texts = np.empty(len(base), dtype=object)
    limits = zip((base + spans.start).tolist(), (base + spans.end).tolist(), strict=True)
    texts[:] = [between.join(map(str, words[a:b])) for a, b in limits]
    return texts


def joined(tags: list[str], pointer: Ints) -> NDArray[Any]:
    """Return the tags of each sequence as text, with a space between them."""
    ends = pointer.tolist()
    texts = np.empty(len(ends) - 1, dtype=object)
    for i in range(len(texts)):
        texts[i] = " ".join(tags[ends[i] : ends[i + 1]])
    return texts


def _part(size: Ints, rows: NDArray[np.integer[Any]]) -> tuple[Ints, Ints]:
    """Return the entries of some tasks in a list of all, and their pointers."""
    begin = np.append(0, np.cumsum(size))
    pointer = np.append(0, np.cumsum(size[rows]))
    return np.repeat(begin[rows] - pointer[:-1], size[rows]) + np.arange(pointer[-1]), pointer
