"""CrowdRankings: orders of several items by workers, frozen, sorted and sparse."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations, Codes, Floats, Payload, Vocabulary
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.core.saved_attributes import Saved, SavedArray

BETTER = " > "  # between the items of a ranking in tables
SIGNS = frozenset(">|[=~≈,;<")  # ids with one of these are written in JSON lists


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CrowdRankings(Annotations):
    """Rankings of items: a worker puts some items in order, the best one first.

    :meth:`from_arrays`, :meth:`from_frame` and :meth:`from_long` check their arguments; the
    constructor does not. Without a task column, the task of a ranking is its set of items.

    Attributes
    ----------
    ranking : (n_entries,) int32
        Codes into ``items``, the best item of each ranking first, one ranking after the other.
    pointer : (n_annotations + 1,) int64
        Ranking ``e`` is ``ranking[pointer[e]:pointer[e + 1]]``.
    items : (n_items,)
        The user's ids of the items.
    task, worker, tasks, workers, weight, columns, notes
        As in :class:`~wisecrowd.core.annotations.Annotations`.

    Examples
    --------
    >>> rankings = CrowdRankings.from_arrays(None, ["ann", "bob"], ["x > y > z", "y > x"])
    >>> rankings
    CrowdRankings(2 tasks, 2 workers, 3 items, 2 annotations)
    >>> rankings.to_pairs()
    CrowdPairs(2 tasks, 2 workers, 3 items, 4 annotations)
    """

    payload: ClassVar[tuple[Payload, ...]] = (
        Payload("ranking", vocabulary="items", pointer="pointer",
                usual=("ranking", "order", "label", "answer", "response")),
    )  # fmt: skip
    optional_roles: ClassVar[tuple[str, ...]] = ("task", "worker")
    axes: ClassVar[Mapping[str, str]] = {**Annotations.axes, "A": "items_"}
    saves: ClassVar[Mapping[str, Saved]] = {
        **Annotations.saves,
        "items_": SavedArray("A", "id"),
        "comparisons_per_item_": SavedArray("A", "amount"),
    }

    ranking: Codes
    pointer: NDArray[np.int64]
    items: Vocabulary

    @classmethod
    def from_arrays(cls, task: Any, worker: Any, *values: Any, **options: Any) -> Self:
        """Build from equally long columns: task, worker and ranking.

        Parameters
        ----------
        task, worker : (n_annotations,) ids, or None
        *values
            ``ranking``: lists of ids, the best first, or text: "a > b > c", "a | b | c", or a JSON
            list.
        **options
            ``items``: all ids, including those in no ranking. ``tasks``, ``workers``, ``weight``,
            ``timestamp``, ``duration``, ``cost``, ``question``, ``worker_kind`` and ``duplicates``
            are described in :meth:`CrowdLabels.from_arrays`. By default every ranking counts.
        """
        from wisecrowd.core.ranking_columns import rankings_from_columns

        given = {"ranking": values[0]} if values else {}
        return rankings_from_columns(cls, task, worker, **given, **options)

    @classmethod
    def from_long(cls, task: Any, worker: Any, item: Any, rank: Any, **options: Any) -> Self:
        """Build from one row per ranked item: task, worker, item and rank, 1 for the best.

        Examples
        --------
        >>> rows = ["t"] * 3, ["ann"] * 3, ["x", "y", "z"], [2, 1, 3]
        >>> CrowdRankings.from_long(*rows).to_dict()["ranking"].tolist()
        ['y > x > z']
        """
        from wisecrowd.core.ranking_columns import columns_from_long

        return cls.from_arrays(*columns_from_long(task, worker, item, rank), **options)

    @classmethod
    def coerce(cls, data: Any, *, type: str | None = None) -> Self:
        """Return data of any accepted form; a tuple of two columns is (worker, ranking)."""
        if isinstance(data, tuple) and len(data) == 2:
            data = (None, *data)
        return super().coerce(data)

    @cached_property
    def n_items(self) -> int:
        """Number of items, ranked or not."""
        return len(self.items)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """(n_annotations,) number of items in each ranking."""
        return np.diff(self.pointer)

    @cached_property
    def comparisons_per_item(self) -> NDArray[np.int64]:
        """(n_items,) number of rankings with each item."""
        return np.bincount(self.ranking, minlength=self.n_items)

    @property
    def weights(self) -> Floats:
        """(n_annotations,) weight of each ranking, 1 if none is given."""
        return np.ones(self.n_annotations) if self.weight is None else self.weight

    def attributes(self) -> dict[str, Any]:
        """Return the ids and counts that a fit publishes; see ``saves``."""
        return super().attributes() | {"comparisons_per_item_": self.comparisons_per_item}

    def _values(self, part: Payload) -> NDArray[Any]:
        """Return rankings as text, or as JSON where ids contain signs of order."""
        ids = self.items.tolist()
        plain = all(isinstance(x, str) and not set(x) & SIGNS for x in ids)
        codes, ends = self.ranking.tolist(), self.pointer.tolist()
        texts = np.empty(self.n_annotations, dtype=object)
        for e in range(self.n_annotations):
            one = [ids[a] for a in codes[ends[e] : ends[e + 1]]]
            texts[e] = BETTER.join(one) if plain else json.dumps(one)
        return texts

    def to_pairs(self) -> CrowdPairs:
        """Return every ranking as votes, one for each pair of its items; the better one is left.

        The votes of a ranking depend on each other, so intervals need clusters of workers or tasks.
        """
        left, right, row = [], [], []
        for length in np.unique(self.lengths).tolist():
            rows = np.flatnonzero(self.lengths == length)
            table = self.ranking[self.pointer[rows][:, None] + np.arange(length)]
            better, worse = np.triu_indices(length, 1)
            left.append(table[:, better].ravel())
            right.append(table[:, worse].ravel())
            row.append(np.repeat(rows, len(better)))
        order = np.argsort(np.concatenate(row), kind="stable")
        source = np.concatenate(row)[order]
        return CrowdPairs(
            task=self.task[source], worker=self.worker[source], tasks=self.tasks,
            workers=self.workers,
            weight=None if self.weight is None else self.weight[source],
            columns={name: values[source] for name, values in self.columns.items()},
            task_columns=dict(self.task_columns), worker_columns=dict(self.worker_columns),
            left=np.concatenate(left)[order], right=np.concatenate(right)[order],
            outcome=np.zeros(len(source), np.int8), items=self.items,
            frame_library=self.frame_library,
        )  # fmt: skip
