"""What the files hold and what of it is read: an export's inventory, workers, names of rows.

An inventory has questions, gold labels, models, and judgements that were left out. Workers are
selected by kind, human or model, and by name.
"""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import Encoded
from wisecrowd.core.messages.descriptions import describe_rows, suggestion
from wisecrowd.core.messages.option_spelling import for_reader, option
from wisecrowd.io.sources import Source

MODEL = "model"
HUMAN = "human"
_NAMED = 12  # most questions that a message names


class SeveralQuestionsError(DataError):
    """An export holds labels for more than one question, and none was chosen.

    ``forms`` gives the forms of the questions; they are named if they differ.
    """

    def __init__(
        self, source: str, questions: Collection[str], forms: Mapping[str, str] | None = None
    ) -> None:
        self.questions = tuple(questions)
        forms = forms or {}
        first = self.questions[0]
        several = len({forms.get(question) for question in self.questions}) > 1
        super().__init__(
            f"{source} has labels for {len(self.questions)} questions, "
            f"{listed(self.questions, forms if several else {})}; choose one with "
            f"{option('label', first)}."
        )


class NoLabelsError(DataError):
    """A file holds no label of the question, or of the workers, that were asked for."""


@dataclass
class Inventory:
    """Counts and names, over all files that are read together.

    Attributes
    ----------
    formats : list of str
        The platforms recognised or asked for.
    question : str or None
        The question whose labels are read.
    others : Counter
        Judgements about other questions, by question.
    dropped : Counter
        Judgements left out, by reason.
    gold : dict of task to class
        Classes, or numbers as text, that the export marks as true.
    contested : set of str
        Tasks with two different gold classes: they have none.
    not_gold : str
        Why labels that are marked as gold are not read as gold; empty if there are none.
    texts : dict of task to text
        Texts that the spans of an export are about, where it has them.
    models : set of str
        Workers that are models.
    remarks : list of str
        Further sentences for the user.
    assumed_worker : str
        Why all rows are taken for those of one worker, where the files do not say so.
    name_workers : str
        How the files would name their workers.
    blank_cells : int
        Cells of wide tables without a label.
    """

    formats: list[str] = field(default_factory=list)
    question: str | None = None
    others: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    gold: dict[str, str] = field(default_factory=dict)
    contested: set[str] = field(default_factory=set)
    not_gold: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)
    remarks: list[str] = field(default_factory=list)
    assumed_worker: str = ""
    name_workers: str = ""
    blank_cells: int = 0

    def drop(self, reason: str, count: int = 1) -> None:
        """Count judgements that are left out."""
        if count:
            self.dropped[reason] += count

    def remark(self, sentence: str) -> None:
        """Keep a sentence, once."""
        if sentence not in self.remarks:
            self.remarks.append(sentence)

    def add_gold(self, task: str, label: str) -> None:
        """Keep what the export says is true; two different classes cancel each other."""
        if self.gold.setdefault(task, label) != label:
            self.contested.add(task)

    def settle(self, question: str | None, source: str) -> None:
        """Take over the question that a file was read for; two files must ask the same one."""
        if question is None:
            return
        if self.question is not None and self.question != question:
            raise SeveralQuestionsError(
                f"{source} with the file before it", [self.question, question]
            )
        self.question = question

    @property
    def known(self) -> dict[str, str]:
        """Gold without the tasks that have two."""
        return {task: label for task, label in self.gold.items() if task not in self.contested}

    def sentences(self) -> list[str]:
        """Return what the user should know, one sentence each."""
        if not self.formats:
            return []
        about = f", labels of {self.question!r}" if self.question else ""
        found = [f"read as {' and '.join(self.formats)}{about}", *self.remarks]
        if self.others:
            found.append(
                f"{self.others.total()} judgements about other questions are not read "
                f"({listed(self.others)})"
            )
        if self.dropped:
            found.append(f"left out: {counted(self.dropped)}")
        if self.models:
            found.append(f"models count as workers of kind 'model': {listed(sorted(self.models))}")
        if self.not_gold:
            found.append(self.not_gold)
        if self.known:
            found.append(
                f"{len(self.known)} tasks have gold in the export; give the same file as gold to "
                "use it"
            )
        if self.contested:
            found.append(f"{len(self.contested)} tasks have two gold classes and count as none")
        return found


def listed(names: Iterable[str], forms: Mapping[str, str] | None = None) -> str:
    """Return names in quotes, the first few of them, with the forms of questions if given.

    Examples
    --------
    >>> listed(["a", "b"]), listed(["a", "b"], {"a": "rating"})
    ("'a', 'b'", "'a' (rating), 'b'")
    """
    names, forms = list(names), forms or {}
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    shown = [f"{name!r} ({forms[name]})" if name in forms else repr(name) for name in names]
    return ", ".join(shown[:_NAMED]) + more


def counted(counts: Counter[str]) -> str:
    """Return counts with their reasons, the most frequent first.

    Examples
    --------
    >>> counted(Counter({"skipped": 2, "without a label": 1}))
    '2 skipped, 1 without a label'
    """
    return ", ".join(f"{count} {reason}" for reason, count in counts.most_common())


ALL = "all"
ID_ROLES = ("task", "worker", "label", "question", "worker_kind")  # encoded for every kind


@dataclass(frozen=True)
class Selection:
    """The workers to read.

    Attributes
    ----------
    kinds : tuple of str or None
        Kinds of workers to keep; ``None``: all but models where there are humans too.
    exclude : tuple of str
        Glob patterns of the workers to leave out.
    """

    kinds: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()

    @classmethod
    def of(cls, kinds: Any, exclude_workers: Any) -> Selection:
        """Return what two options ask for, or say what is wrong with them.

        Examples
        --------
        >>> Selection.of("human", ["model:*"])
        Selection(kinds=('human',), exclude=('model:*',))
        """
        return cls(
            None if kinds is None else _texts(kinds, "kinds", f"{HUMAN!r}, {MODEL!r} or {ALL!r}"),
            _texts(exclude_workers, "exclude_workers", "patterns such as 'model:*'"),
        )

    def rows(self, values: Mapping[str, Any]) -> tuple[NDArray[np.bool_], list[str]]:
        """Return a mask of the rows to keep, and sentences about the other rows."""
        if "worker" not in values:  # votes whose workers are not known
            return np.ones(len(next(iter(values.values()))), dtype=bool), []
        worker: Encoded = values["worker"]
        kept, notes = self._by_kind(worker, values.get("worker_kind"))
        if self.exclude:
            named, idle = self._named(worker)
            excluded = kept & named[worker.codes] & (worker.codes >= 0)
            n_workers = len(np.unique(worker.codes[excluded]))
            kept = kept & ~excluded
            option = for_reader("exclude_workers", "--exclude-workers")
            notes.append(
                f"{_counted(n_workers, 'worker')} with {_counted(int(excluded.sum()), 'label')} "
                f"left out, as {option} asks"
            )
            if idle:
                notes.append(f"{_counted(idle, 'pattern')} of {option} matched no worker")
        return kept, notes

    def _named(self, worker: Encoded) -> tuple[NDArray[np.bool_], int]:
        """(n_workers + 1,) which ids match, the last for a missing id; how many patterns do not."""
        found = np.zeros(len(worker.vocabulary) + 1, dtype=bool)
        ids = [str(one) for one in worker.vocabulary.tolist()]
        idle = 0
        for pattern in self.exclude:
            fits = re.compile(fnmatch.translate(pattern)).match
            matched = np.array([one == pattern or fits(one) is not None for one in ids], dtype=bool)
            idle += not matched.any()
            found[:-1] |= matched
        return found, idle

    def _by_kind(
        self, worker: Encoded, kind: Encoded | None
    ) -> tuple[NDArray[np.bool_], list[str]]:
        everybody = np.ones(len(worker.codes), dtype=bool)
        names = [HUMAN] if kind is None else [str(one) for one in kind.vocabulary.tolist()]
        if self.kinds is None:
            if kind is None or not {HUMAN, MODEL} <= set(names):
                return everybody, []
            models = kind.codes == names.index(MODEL)
            return ~models, [_set_aside(worker, models)]
        if ALL in self.kinds:
            return everybody, []
        for asked in self.kinds:
            if asked not in (HUMAN, MODEL, *names):
                raise ParameterError(
                    f"There is no kind of worker {asked!r}{suggestion(asked, (HUMAN, MODEL))}; "
                    f"there are {listed(names)}."
                )
        if kind is None:
            return everybody & (HUMAN in self.kinds), []
        wanted = np.array([*(name in self.kinds for name in names), HUMAN in self.kinds])
        return wanted[kind.codes], []  # a worker without a kind, code -1, is taken for a human


def _set_aside(worker: Encoded, models: NDArray[np.bool_]) -> str:
    n_workers = len(np.unique(worker.codes[models]))
    verb = "is" if n_workers == 1 else "are"
    remedy = for_reader(f"kinds=({HUMAN!r}, {MODEL!r})", f"--kinds {HUMAN},{MODEL}")
    return (
        f"{_counted(n_workers, 'model')} with {_counted(int(models.sum()), 'label')} {verb} left "
        f"out, because humans labelled too; {remedy} counts both"
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _texts(given: Any, name: str, what: str) -> tuple[str, ...]:
    if isinstance(given, str):
        given = (given,)
    if not isinstance(given, Iterable):
        raise ParameterError(f"{name} is {given!r}; give {what}.")
    texts = tuple(given)
    shown = for_reader(name, f"--{name.replace('_', '-')}")
    for one in texts:
        if not isinstance(one, str) or not one.strip():
            raise ParameterError(f"{shown} has {one!r}; give {what}.")
    if name == "kinds" and not texts:
        raise ParameterError(f"{shown} is empty; give {what}.")
    return texts


def keep_rows(values: dict[str, Any], kept: NDArray[np.bool_]) -> dict[str, Any]:
    """Return the columns of the rows that are kept, without ids that no row uses."""
    import pyarrow as pa

    mask = pa.array(kept)
    return {
        role: _shortened(column, kept) if isinstance(column, Encoded) else column.filter(mask)
        for role, column in values.items()
    }


def _shortened(column: Encoded, kept: NDArray[np.bool_]) -> Encoded:
    codes = column.codes[kept]
    used = np.unique(codes[codes >= 0])
    new = np.full(len(column.vocabulary) + 1, -1, dtype=column.codes.dtype)
    new[used] = np.arange(len(used), dtype=column.codes.dtype)
    return Encoded(new[codes], column.vocabulary[used])


def leave_out_empty(values: dict[str, Any]) -> None:
    """Delete the optional columns of an export that hold no values."""
    for role in ("timestamp", "duration", "cost"):
        if role in values and values[role].null_count == len(values[role]):
            del values[role]
    if "worker_kind" in values and values["worker_kind"].vocabulary.tolist() == [HUMAN]:
        del values["worker_kind"]


def nobody_left(source: str) -> DataError:
    """Return the error for a file without a label by the workers that were asked for."""
    return NoLabelsError(
        f"{source} holds no label by the workers that are asked for; change "
        + for_reader("kinds or exclude_workers.", "--kinds or --exclude-workers.")
    )


def row_names_of(sources: list[Source], ends: NDArray[np.int64], noun: str) -> Any:
    """Return how messages name rows: with the file they are in."""

    def name(rows: NDArray[np.integer[Any]], limit: int = 5) -> str:
        if len(sources) == 1:
            return f"{describe_rows(rows, limit)} of {sources[0].name}".replace("row", noun, 1)
        files = np.searchsorted(ends, rows[:limit], side="right")
        inside = rows[:limit] - np.append(0, ends)[files]
        shown = [
            f"{noun} {row + 1} of {sources[f].name}" for f, row in zip(files, inside, strict=True)
        ]
        more = f" and {len(rows) - limit} more" if len(rows) > limit else ""
        return ", ".join(shown) + more

    return name


def renumbered(name: Any, kept: NDArray[np.bool_]) -> Any:
    """Return how messages name rows after some were left out: by their original numbers."""
    original = np.flatnonzero(kept)
    return lambda rows, limit=5: name(original[rows], limit)
