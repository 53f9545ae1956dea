"""SequenceAnswers: the tags of every task; gold, priors and truths become tags, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.answers import Answers, Columns, Learned, capped_rows
from wisecrowd.core.arrow import is_missing
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import describe_ids, suggestion
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Codes, Floats, Longs
from wisecrowd.kinds.classes.answers import agreement_columns
from wisecrowd.kinds.sequences.container import CrowdSequences
from wisecrowd.kinds.sequences.metrics import SPAN_ERRORS, span_scores
from wisecrowd.kinds.sequences.tag_scheme import Spans, TagScheme
from wisecrowd.kinds.sequences.tag_texts import in_bio, tags_in

LEAST = 1e-6  # smallest probability of a tag in a prior, relative to the largest of the token
RARE = 0.1
TRUTH, GOLD = "truth", "gold"  # gold must be legal; a truth is only compared with


class SequencePrior(NamedTuple):
    """What is known about sequences before any label.

    Attributes
    ----------
    gold : (n_tokens,) int64, optional
        Codes of known tags, -1 where unknown.
    tokens : (n_tokens, n_classes) float64, optional
        Log-probabilities of tags, for instance of a tagger.
    """

    gold: Longs | None
    tokens: Floats | None = None

    def evidence(self, data: CrowdSequences) -> Floats | None:
        """Return (n_tokens, n_classes) log-probabilities relative to those of an average token.

        Chains have a distribution of tags of their own, which must not count twice. A tag that the
        prior hardly ever expects is compared with a tenth of its share among the labels.
        """
        if self.tokens is None:
            return None
        count = np.bincount(data.tags, minlength=data.n_classes) + 1.0
        mean = np.maximum(np.exp(self.tokens).mean(axis=0), RARE * count / count.sum())
        return np.asarray(self.tokens - np.log(mean))


def sequence_prior(task_prior: Any, gold: Any, data: CrowdSequences) -> SequencePrior:
    """Return known tags and the probabilities of tags, by a tagger for instance.

    Parameters
    ----------
    task_prior : mapping from task to (length, n_classes), or one such array per task
        Probabilities, or log-probabilities. One array (n_tokens, n_classes) of all tokens, one task
        after the other, is also accepted.
    gold
        See :func:`known_tags`.
    data : CrowdSequences
    """
    tokens = None if task_prior is None else _token_logs(task_prior, data)
    return SequencePrior(None if gold is None else known_tags(gold, data, GOLD), tokens)


def _token_logs(prior: Any, data: CrowdSequences) -> Floats:
    """Return the log-probabilities of the tags of all tokens."""
    given = prior
    if isinstance(given, Mapping):
        missing = [task for task in data.tasks.tolist() if task not in given]
        if missing:
            raise DataError(
                f"The task prior lacks task {missing[0]!r}; give probabilities for every task."
            )
        given = [given[task] for task in data.tasks.tolist()]
    if isinstance(given, list | tuple):
        given = _joined(given, data)
    table = np.asarray(given)
    shape = int(data.token_pointer[-1]), data.n_classes
    if table.shape != shape or table.dtype.kind not in "fiu":
        raise DataError(
            f"The task prior has the shape {table.shape}, and sequences with {shape[0]} tokens and "
            f"{shape[1]} tags need {shape}: one row per token, one task after the other."
        )
    table = table.astype(np.float64)
    if np.isnan(table).any() or ((table > 0).any() and (table < 0).any()):
        raise DataError(
            "The task prior has both signs, or values that are not numbers; give probabilities, or "
            "their logarithms."
        )
    if (table > 0).any():
        with np.errstate(divide="ignore"):
            table = np.log(table)
    top = table.max(axis=1, keepdims=True)
    if not np.isfinite(top).all():
        raise DataError("The task prior rules out all tags of a token; leave one possible.")
    table = np.maximum(table - top, np.log(LEAST))
    return np.asarray(table - np.logaddexp.reduce(table, axis=1, keepdims=True))


def _joined(arrays: Any, data: CrowdSequences) -> Any:
    """Return arrays of tasks as one, after a look at their lengths."""
    if len(arrays) != data.n_tasks:
        raise DataError(
            f"The task prior has {len(arrays)} arrays for {data.n_tasks} tasks; give one per task."
        )
    for task, array, length in zip(data.tasks.tolist(), arrays, data.length, strict=True):
        if np.shape(array) != (length, data.n_classes):
            raise DataError(
                f"The task prior of task {task!r} has the shape {np.shape(array)}; its {length} "
                f"tokens and {data.n_classes} tags need {(int(length), data.n_classes)}."
            )
    return np.concatenate([np.zeros((0, data.n_classes)), *map(np.asarray, arrays)])


def known_tags(truth: Any, data: CrowdSequences, what: str = TRUTH) -> Longs:
    """Return the known tag of every token of the data, -1 where unknown.

    Parameters
    ----------
    truth : mapping from task to tags, (task, tags) frame, or (n_tasks,) array with None
        Tags are text with a space between them, or a list.
    data : CrowdSequences
    what : str
        Name of the truth in messages.
    """
    ids, values = _pairs(truth, data, what)
    codes = lookup(ids, data.tasks)
    place = {tag: code for code, tag in enumerate(data.classes.tolist())}
    known = np.full(int(data.token_pointer[-1]), -1, dtype=np.int64)
    legal = data.tag_scheme.legal
    for code, task, value in zip(codes.tolist(), ids, values, strict=True):
        if code < 0 or is_missing(value):
            continue
        tags = _tags(value, task, what, bio=data.scheme == "bio")
        if len(tags) != data.length[code]:
            raise DataError(
                f"The {what} gives task {task!r} {len(tags)} tags, and workers gave it "
                f"{data.length[code]}; give one tag per token."
            )
        own = [place.get(tag, -1) for tag in tags]
        if -1 in own:
            strange = tags[own.index(-1)]
            raise DataError(
                f"The {what} gives task {task!r} the tag "
                f"{strange!r}{suggestion(strange, data.classes.tolist())}, which is not among the "
                f"tags ({describe_ids(data.classes)}); correct it, or declare it in classes."
            )
        for before, tag in zip([len(legal) - 1, *own[:-1]], own, strict=True):
            if what == GOLD and not legal[before, tag]:
                raise DataError(
                    f"The {what} gives task {task!r} the tag {data.classes[tag]!r} where no "
                    "span of its type begins; let spans begin with B-."
                )
        known[data.token_pointer[code] : data.token_pointer[code + 1]] = own
    if (known < 0).all():
        raise DataError(f"The {what} names none of these tasks; compare the ids.")
    return known


def _tags(value: Any, task: Any, what: str, *, bio: bool) -> list[str]:
    """Return known tags in the notation of the data; gold is not repaired, only translated."""
    try:
        tags = tags_in(value) if isinstance(value, str) else [str(tag) for tag in value]
    except ValueError as error:
        raise DataError(f"The {what} of task {task!r} {error}.") from None
    return in_bio(tags) if bio else tags


def _pairs(truth: Any, data: CrowdSequences, what: str) -> tuple[list[Any], list[Any]]:
    if isinstance(truth, Mapping) and not hasattr(truth, "column_names"):
        return list(truth.keys()), list(truth.values())
    if hasattr(truth, "columns") or hasattr(truth, "column_names"):
        return _from_frame(truth, what)
    values = list(truth)
    if len(values) != data.n_tasks:
        raise DataError(
            f"The {what} has {len(values)} entries for {data.n_tasks} tasks; give one per task, or "
            "a mapping from task to tags."
        )
    return data.tasks.tolist(), values


def _from_frame(truth: Any, what: str) -> tuple[list[Any], list[Any]]:
    """Return the tasks and tags of a frame."""
    import narwhals as nw

    frame = nw.from_native(truth, eager_only=True)
    names = {str(name).lower(): name for name in frame.columns}
    tags = next((names[name] for name in ("tags", "label", "truth") if name in names), None)
    if "task" not in names or tags is None:
        raise DataError(
            f"The {what} has the columns {', '.join(map(repr, frame.columns))}; call them task and "
            "tags."
        )
    return frame[names["task"]].to_list(), frame[tags].to_list()


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

    pointer: Longs
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


def joined(tags: list[str], pointer: Longs) -> NDArray[Any]:
    """Return the tags of each sequence as text, with a space between them."""
    ends = pointer.tolist()
    texts = np.empty(len(ends) - 1, dtype=object)
    for i in range(len(texts)):
        texts[i] = " ".join(tags[ends[i] : ends[i + 1]])
    return texts


def _part(size: Longs, rows: NDArray[np.integer[Any]]) -> tuple[Longs, Longs]:
    """Return the entries of some tasks in a list of all, and their pointers."""
    begin = np.append(0, np.cumsum(size))
    pointer = np.append(0, np.cumsum(size[rows]))
    return np.repeat(begin[rows] - pointer[:-1], size[rows]) + np.arange(pointer[-1]), pointer
