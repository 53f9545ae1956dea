"""Known tags of sequences: gold for a fit, and the truth for a score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import is_missing
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import describe_ids, suggestion
from wisecrowd.core.sequences import CrowdSequences
from wisecrowd.core.tag_texts import in_bio, tags_in

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
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

    gold: Ints | None
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


def known_tags(truth: Any, data: CrowdSequences, what: str = TRUTH) -> Ints:
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
