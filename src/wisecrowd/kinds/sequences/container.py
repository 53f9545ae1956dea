"""CrowdSequences: tags of the tokens of texts by workers, frozen, sorted and sparse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations, Payload, Vocabulary
from wisecrowd.core.saved_attributes import Saved, SavedArray, SavedValue
from wisecrowd.core.types import Codes, Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.sequences.tag_scheme import SCHEMES, TagScheme

LENGTH, OFFSETS, WORDS = "length", "offsets", "words"  # the task columns of a sequence


MOST_SPANS = 4  # of an annotation in examples


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CrowdSequences(Annotations):
    """Tag sequences: a worker gives a tag to every token of a task.

    :meth:`from_arrays`, :meth:`from_spans` and :meth:`from_frame` check their arguments; the
    constructor does not.

    Attributes
    ----------
    tags : (n_token_labels,) int32
        Codes into ``classes``, one sequence after the other.
    pointer : (n_annotations + 1,) int64
        Sequence ``e`` is ``tags[pointer[e]:pointer[e + 1]]``.
    classes : (n_classes,) str
        All tags. With the scheme "bio" these are O, and B-x and I-x for every type x.
    scheme : {"bio", "plain"}
    task_columns : mapping
        ``length``: tokens of each task. ``offsets``, if the labels were spans of characters: the
        limits of the tokens of each task. ``words``, if the text is known: the text of each token.
    task, worker, tasks, workers, weight, columns, notes
        As in :class:`~wisecrowd.core.annotations.Annotations`.

    Examples
    --------
    >>> tags = ["B-PER I-PER O", "B-PER O O", "O O"]
    >>> data = CrowdSequences.from_arrays(["s1", "s1", "s2"], ["ann", "bob", "ann"], tags)
    >>> data
    CrowdSequences(2 tasks, 2 workers, 3 classes, 3 annotations)
    >>> data.length.tolist()
    [3, 2]
    """

    kind: ClassVar[str] = "sequences"
    payload: ClassVar[tuple[Payload, ...]] = (
        Payload("tags", vocabulary="classes", pointer="pointer",
                usual=("tags", "labels", "label", "answer", "response", "type")),
    )  # fmt: skip
    optional_roles: ClassVar[tuple[str, ...]] = ("start", "end", "text")
    axes: ClassVar[Mapping[str, str]] = {**Annotations.axes, "K": "classes_"}
    saves: ClassVar[Mapping[str, Saved]] = {
        **Annotations.saves,
        "classes_": SavedArray("K", "id"),
        "scheme_": SavedValue(lambda value: value in SCHEMES, "a scheme of tags"),
        "length_": SavedArray("N", "count"),
        "offset_": SavedArray("*", "count"),
        "words_": SavedArray("*", "label", optional=True),
        "joined_by_": SavedValue(lambda value: value in ("", " "), "'' or ' '", optional=True),
    }

    tags: Codes
    pointer: NDArray[np.int64]
    classes: Vocabulary
    scheme: str

    @classmethod
    def roles(cls) -> dict[str, tuple[str, ...]]:
        """Return the columns of tag sequences, and of spans, each with its usual names."""
        spans = {"start": ("start", "startoffset", "begin"), "end": ("end", "endoffset")}
        return super().roles() | spans | {"text": ("text", "tokens", "words", "sentence")}

    @classmethod
    def from_arrays(cls, task: Any, worker: Any, *values: Any, **options: Any) -> Self:
        """Build from equally long columns: task, worker and tags.

        Parameters
        ----------
        task, worker : (n_annotations,) ids
        *values
            ``tags``: text with a space between the tags, or lists. With the columns ``start`` and
            ``end``, given by name, it is the type of a span; see :meth:`from_spans`.
        **options
            ``classes``: all tags. ``scheme``: "bio" or "plain"; by default "bio" if some tags begin
            with B- or I-, and strange ones are refused. BIOES, BILOU and BMES become BIO, and
            ``I-x`` that continues no span of type x begins one. ``text``: one word per tag, with a
            space between words, or a list; see :meth:`from_spans` for spans. ``tasks``,
            ``workers``, ``weight``, ``timestamp``, ``duration``, ``cost``, ``question``,
            ``worker_kind`` and ``duplicates`` are described in :meth:`CrowdLabels.from_arrays`.
        """
        from wisecrowd.kinds.sequences.columns import sequences_from_columns

        given = dict(zip(("tags", "start", "end"), values, strict=False))
        return sequences_from_columns(cls, task, worker, **given, **options)

    @classmethod
    def from_spans(
        cls, task: Any, worker: Any, start: Any, end: Any, label: Any, **options: Any
    ) -> Self:
        """Build from one row per span: its first character, the one after its last, and its type.

        The limits of all spans of a task cut its text into tokens. A row without start, end and
        type says that the worker has read the task and marked nothing. ``text``, given by name, is
        the whole text of each task, or the text of each span; answers then have a text, too.

        Examples
        --------
        >>> rows = ["d"] * 3, ["ann", "bob", "cem"], [0, 0, None], [5, 12, None]
        >>> data = CrowdSequences.from_spans(*rows, ["PER", "PER", None])
        >>> data.to_dict()["tags"].tolist()
        ['B-PER O', 'B-PER I-PER', 'O O']
        >>> data.task_columns["offsets"][0].tolist()
        [0, 5, 12]
        """
        return cls.from_arrays(task, worker, label, start=start, end=end, **options)

    def marks(self) -> tuple[int, int]:
        """Return the numbers of types of spans, and of spans."""
        scheme = self.tag_scheme
        return len(scheme.types), len(scheme.spans(self.tags, self.pointer).start)

    @cached_property
    def tag_scheme(self) -> TagScheme:
        """The tags and their rules."""
        return TagScheme(self.scheme, tuple(self.classes.tolist()))

    @cached_property
    def n_classes(self) -> int:
        """Number of tags."""
        return len(self.classes)

    @property
    def length(self) -> NDArray[np.int64]:
        """(n_tasks,) number of tokens of each task; 0 if nobody tagged it."""
        return self.task_columns[LENGTH]

    @cached_property
    def token_pointer(self) -> NDArray[np.int64]:
        """(n_tasks + 1,) tokens of task ``i`` are ``token_pointer[i]`` to the next, in one list."""
        return np.append(0, np.cumsum(self.length))

    @cached_property
    def token(self) -> NDArray[np.int64]:
        """(n_token_labels,) the token, in the list of all, that each tag is about."""
        size = np.diff(self.pointer)
        return np.repeat(self.token_pointer[self.task] - self.pointer[:-1], size) + np.arange(
            len(self.tags)
        )

    @cached_property
    def marked(self) -> NDArray[np.bool_]:
        """(n_tokens,) whether any worker gave a token a tag other than outside."""
        found = np.zeros(int(self.token_pointer[-1]), dtype=bool)
        found[self.token[self.tag_scheme.type_of[self.tags] >= 0]] = True
        return found

    @cached_property
    def token_worker(self) -> Codes:
        """(n_token_labels,) the worker of each tag."""
        return np.repeat(self.worker, np.diff(self.pointer))

    @cached_property
    def previous(self) -> Codes:
        """(n_token_labels,) the same worker's tag before; ``n_classes`` at the start."""
        before = np.append(np.int32(self.n_classes), self.tags[:-1]).astype(np.int32)
        starts = self.pointer[:-1][np.diff(self.pointer) > 0]
        before[starts] = self.n_classes
        return before

    @cached_property
    def token_weight(self) -> Floats | None:
        """(n_token_labels,) weight of each tag; None if all are 1."""
        return None if self.weight is None else np.repeat(self.weight, np.diff(self.pointer))

    def to_labels(self) -> CrowdLabels:
        """Return the tags as labels of tokens: task ``t`` is the token ``t`` in the list of all."""
        order = np.argsort(self.token, kind="stable")
        return CrowdLabels(
            self.token[order].astype(np.int32), self.token_worker[order], self.tags[order],
            np.arange(int(self.token_pointer[-1])), self.workers, self.classes,
            weight=None if self.token_weight is None else self.token_weight[order],
        )  # fmt: skip

    def attributes(self) -> dict[str, Any]:
        """Return the ids and counts that a fit publishes; see ``saves``."""
        found = super().attributes() | {
            "scheme_": self.scheme, "length_": self.length, "offset_": self.offset,
        }  # fmt: skip
        if WORDS in self.task_columns:
            found["words_"] = self.words
            found["joined_by_"] = "" if OFFSETS in self.task_columns else " "
        return found

    @property
    def words(self) -> NDArray[Any]:
        """(n_tokens,) text of each token in the list of all, if ``task_columns`` has ``words``."""
        words = [word for one in self.task_columns[WORDS].tolist() for word in one]
        return np.array(words, dtype=object)

    @cached_property
    def offset(self) -> NDArray[np.int64]:
        """Limits of the tokens of each task, one task after the other: characters or tokens."""
        if OFFSETS in self.task_columns:
            return np.concatenate([np.zeros(0, np.int64), *self.task_columns[OFFSETS].tolist()])
        begin = np.append(0, np.cumsum(self.length + 1))
        return np.asarray(np.arange(begin[-1]) - np.repeat(begin[:-1], self.length + 1))

    def _values(self, part: Payload) -> NDArray[Any]:
        """Return the tags of each annotation as text, with a space between them."""
        names, ends = self.classes[self.tags].tolist(), self.pointer.tolist()
        texts = np.empty(self.n_annotations, dtype=object)
        for e in range(self.n_annotations):
            texts[e] = " ".join(names[ends[e] : ends[e + 1]])
        return texts

    def annotation_text(self, e: int) -> str:
        """Return the types and places of marked tokens, "PER 0-2"."""
        tags = self.classes[self.tags[self.pointer[e] : self.pointer[e + 1]]].tolist()
        if self.scheme != "bio":
            return " ".join(map(str, tags))
        found: list[list[Any]] = []
        for place, tag in enumerate(tags):
            if tag.startswith("B-") or (tag != "O" and (not found or found[-1][2] != place)):
                found.append([tag[2:], place, place + 1])
            elif tag != "O":
                found[-1][2] = place + 1
        named = [f"{kind} {start}" + (f"-{end - 1}" if end - start > 1 else "")
                 for kind, start, end in found[:MOST_SPANS]]  # fmt: skip
        return (", ".join(named) + (" …" if len(found) > MOST_SPANS else "")) or "nothing"
