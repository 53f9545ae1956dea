"""Selection of the workers to read: by kind, human or model, and by name."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import Encoded
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.io.inventory import HUMAN, MODEL, NoLabelsError, listed

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
