"""Sorting of annotations, and the policy for repeated labels of a task by the same worker."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, WisecrowdWarning
from wisecrowd.core.ids.packed_sort import SortedAnnotations, sort_annotations
from wisecrowd.core.kinds import kinds_package
from wisecrowd.core.messages.descriptions import Places
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.types import Codes

AUTO = "auto"
DUPLICATES = (AUTO, "last", "keep", "error")
# Above both limits, repeated pairs with different labels are not occasional corrections. In
# single-label data sets at most 1.1% of the pairs differ (ZenCrowd), in multi-label tables 14%.
MANY_PAIRS = 5
MANY_SHARE = 0.05


class Arranged(NamedTuple):
    """Codes sorted by (task, worker), their columns, and a note if rows were dropped."""

    task: Codes
    worker: Codes
    label: Codes
    extra: dict[str, NDArray[Any]]
    note: str | None


def arrange(
    codes: tuple[Codes, Codes, Codes],
    sizes: tuple[int, int, int],
    rows: NDArray[np.int64] | None,
    extra: Mapping[str, NDArray[Any]],
    policy: str,
    places: Places,
) -> Arranged:
    """Sort annotations and apply the policy for duplicates. The code arrays are overwritten.

    Parameters
    ----------
    codes, sizes
        Codes of task, worker and label, and the number of each.
    rows : (n,) int64, optional
        Input rows of the codes, ascending; None if all.
    extra : mapping of role to array
        One value per input row.
    policy : {"auto", "last", "keep", "error"}
        "last" keeps the label with the last timestamp or, without timestamps, in the last row.
        "auto" does the same with a warning, but raises an error if many pairs have different
        labels. Timestamps do not prevent that error: logs with several labels per task have them.
    places : Places
        Names of columns and rows for messages.
    """
    ordered = sort_annotations(*codes, sizes)
    table = _Table(ordered, rows, extra, places)
    kept, note = table.resolve(policy)
    chosen = (ordered.task, ordered.worker, ordered.label)
    if kept is not None:
        chosen = (chosen[0][kept], chosen[1][kept], chosen[2][kept])
    return Arranged(*chosen, table.columns(kept), note)


class _Table:
    """Sorted annotations and their columns, which are still in input order."""

    def __init__(
        self,
        ordered: SortedAnnotations,
        rows: NDArray[np.int64] | None,
        extra: Mapping[str, NDArray[Any]],
        places: Places,
    ) -> None:
        self.ordered = ordered
        self.kept_rows = rows
        self.extra = extra
        self.places = places

    def rows(self, positions: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Return the input rows of all annotations, or of those at some sorted positions."""
        rows = self.ordered.rows if positions is None else self.ordered.rows[positions]
        return rows if self.kept_rows is None else self.kept_rows[rows]

    def columns(self, kept: NDArray[np.int64] | None) -> dict[str, NDArray[Any]]:
        if not self.extra:
            return {}
        rows = self.rows(kept)
        return {role: values[rows] for role, values in self.extra.items()}

    def resolve(self, policy: str) -> tuple[NDArray[np.int64] | None, str | None]:
        """Return the sorted positions to keep, in order (None for all), and a note."""
        task, worker = self.ordered.task, self.ordered.worker
        same = repeated_pairs(task, worker)
        if not same.any():
            return None, None
        repeated = np.flatnonzero(np.append(same, False) | np.append(False, same))
        if policy == "keep":
            styles = [role for role in self.extra if role.startswith("style:")]
            by = ("weight", "timestamp", *styles)
            return self._arrange(repeated, by, by_label=True), None
        first, second = self.rows(np.flatnonzero(same)[0] + np.arange(2))
        if policy == "error":
            pair = self.places.rows(np.array([first, second]))
            raise DataError(
                f"The same worker labelled the same task in {pair}; remove one of them, or "
                f"choose {option('duplicates', 'last')} or {option('duplicates', 'keep')}."
            )
        self._refuse_several_questions(repeated)
        if policy == AUTO:
            self._refuse_several_labels(same)
        how = "the last in the table counts"
        order = np.arange(len(task))
        if "timestamp" in self.extra:
            how = "the latest timestamp counts"
            order = self._arrange(repeated, ("timestamp",), by_label=False)
        kept = order[np.append(~same, True)]
        if policy != AUTO:
            return kept, None
        note = (
            f"{int(same.sum())} annotations repeat a (task, worker) pair: {how} "
            f"({option('duplicates', 'keep')} counts all, {option('duplicates', 'error')} refuses)"
        )
        warnings.warn(note, WisecrowdWarning, stacklevel=5)
        return kept, note

    def _arrange(
        self, repeated: NDArray[np.int64], by: tuple[str, ...], *, by_label: bool
    ) -> NDArray[np.int64]:
        """Return positions with repeated pairs in an order that does not depend on the input."""
        rows = self.rows(repeated)
        keys = [_sortable(self.extra[role][rows]) for role in by if role in self.extra][::-1]
        if by_label:
            keys.append(self.ordered.label[repeated])
        keys += [self.ordered.worker[repeated], self.ordered.task[repeated]]
        positions = np.arange(len(self.ordered.task), dtype=np.int64)
        positions[repeated] = repeated[np.lexsort(keys)]
        return positions

    def _refuse_several_labels(self, same: NDArray[np.bool_]) -> None:
        """Refuse many pairs with different labels, because their meaning is not declared."""
        label = self.ordered.label
        differs = np.flatnonzero(same & (label[1:] != label[:-1]))
        n_pairs, n_different = len(label) - int(same.sum()), different_pairs(same, label)
        if not are_many(n_different, n_pairs):
            return
        first = np.sort(self.rows(differs[0] + np.arange(2)))
        raise kinds_package().several_labels(
            n_different, n_pairs, f", first in {self.places.rows(first)}", self.places.header,
            self.places.names.get("task", "task"),
        )  # fmt: skip

    def _refuse_several_questions(self, repeated: NDArray[np.int64]) -> None:
        if "question" not in self.extra:
            return
        questions = self.extra["question"][self.rows(repeated)]
        task, worker = self.ordered.task[repeated], self.ordered.worker[repeated]
        pair = (task[1:] == task[:-1]) & (worker[1:] == worker[:-1])
        differs = np.flatnonzero(pair & (questions[1:] != questions[:-1]))
        if len(differs):
            at = differs[0]
            raise DataError(
                f"One worker labelled one task for two questions, {questions[at]!r} and "
                f"{questions[at + 1]!r} ({self.places.rows(self.rows(repeated[at : at + 2]))}); "
                "keep the rows of one question, or make task and question together the task."
            )


def repeated_pairs(task: Codes, worker: Codes) -> NDArray[np.bool_]:
    """Return (n - 1,): whether an annotation has the task and worker of the one before it."""
    return np.asarray((task[1:] == task[:-1]) & (worker[1:] == worker[:-1]))


def different_pairs(same: NDArray[np.bool_], label: Codes) -> int:
    """Return how many repeated pairs have different labels."""
    differs = np.flatnonzero(same & (label[1:] != label[:-1]))
    return len(np.unique(np.cumsum(~same)[differs]))


def are_many(n_different: int, n_pairs: int) -> bool:
    """Return whether pairs with different labels are more than occasional corrections."""
    return n_different >= MANY_PAIRS and n_different > MANY_SHARE * n_pairs


def _sortable(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers or times as sort keys; missing values come first."""
    if values.dtype.kind == "M":
        return values.view(np.int64)  # NaT is the smallest integer
    return np.where(np.isnan(values), -np.inf, values)
