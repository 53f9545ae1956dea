"""CrowdRankings: orders of several items by workers, and how columns become checked rankings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations, Payload, Vocabulary
from wisecrowd.core.arrow import is_missing, to_numpy
from wisecrowd.core.duplicates import AUTO
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import encode, lookup
from wisecrowd.core.ids.lookalike_ids import warn_of_lookalikes
from wisecrowd.core.intake import Intake, nobody
from wisecrowd.core.messages.descriptions import Places
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Codes
from wisecrowd.core.validation import check_lengths, distinct_ids
from wisecrowd.kinds.pairs.container import CrowdPairs

BETTER = " > "  # between the items of a ranking in tables
SIGNS = frozenset(">|[=~≈,;<")  # ids with one of these are written in JSON lists
_TIE = re.compile(r"[=~≈,;<]")  # between items of a text that are of equal rank, or the worse first
_SPACED = re.compile(r"\s(?:=+|~|≈|<)\s")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CrowdRankings(Annotations):
    """Rankings of items: a worker puts some items in order, the best one first.

    :meth:`from_arrays`, :meth:`from_frame` and :meth:`from_long` check their arguments; the
    constructor does not. Without a task column, the task of a ranking is its set of items.

    A ranking of n items is not n (n - 1) / 2 independent votes, so rankings are not pairs.
    Rankings of platforms are still read as pairs, because reports and audits are for pairs.

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

    kind: ClassVar[str] = "rankings"
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


Rankings = TypeVar("Rankings", bound=CrowdRankings)


def rankings_from_columns(
    container: type[Rankings],
    task: Any,
    worker: Any,
    *,
    ranking: Any = None,
    items: Any = None,
    duplicates: str = AUTO,
    **shared: Any,
) -> Rankings:
    """Build rankings from columns; see :meth:`CrowdRankings.from_arrays`."""
    if ranking is None:
        raise ParameterError(f"{container.__name__} need the column ranking; give it.")
    rows = Intake(
        {"task": task, "worker": worker, "ranking": ranking},
        duplicates="keep" if duplicates == AUTO else duplicates, **shared,
    )  # fmt: skip
    lists = _parsed(ranking, rows.places)
    _refuse_ties(ranking, lists, rows.places, declared=items is not None)
    if not lists:
        raise DataError("There are no rankings: the table has no data rows.")
    codes, item_ids = _item_codes(lists, items, rows.places)
    distinct = sorted(set(codes))
    place = {one: k for k, one in enumerate(distinct)}
    if task is None:
        task = [" | ".join(sorted(str(item_ids[a]) for a in one)) for one in codes]
    rows.code(task, nobody(len(codes)) if worker is None else worker)
    rows.notes += warn_of_lookalikes(rows.tasks[:0], rows.workers, item_ids, values="items")
    rows.measure()
    table = rows.arrange(np.array([place[one] for one in codes], dtype=np.int32), len(distinct))
    chosen = [distinct[k] for k in table.label.tolist()]
    return rows.build(
        container, table, ranking=np.array([a for one in chosen for a in one], dtype=np.int32),
        pointer=np.cumsum([0, *map(len, chosen)]).astype(np.int64), items=item_ids,
    )  # fmt: skip


def _parsed(ranking: Any, places: Places) -> list[list[Any]]:
    """Return the ids of each ranking, the best first."""
    found = []
    for row, value in enumerate(to_numpy(ranking).tolist()):
        where = places.where(_only(row, len(ranking)))
        if isinstance(value, str):
            ids = _from_text(value, where)
        elif isinstance(value, list | tuple | np.ndarray):
            ids = list(value)
        elif is_missing(value):
            ids = []
        else:
            raise DataError(
                f"The ranking {value!r} in {where} is neither a list nor text; write 'a > b > c'."
            )
        if len(ids) < 2:
            raise DataError(
                f"The ranking in {where} has {len(ids) or 'no'} items; rank two or more, or remove "
                "the row."
            )
        found.append(ids)
    return found


def _from_text(text: str, where: str) -> list[Any]:
    """Return the ids in a text: a JSON list, or ids with > or | between them."""
    text = text.strip()
    if text.startswith("["):
        try:
            ids = json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            raise DataError(
                f"The ranking {text[:60]!r} in {where} is not a JSON list; correct it."
            ) from None
        return list(ids)
    if not text:
        return []
    sign = ">" if ">" in text else "|"
    ids = [one.strip() for one in text.split(sign)]
    if not all(ids):
        raise DataError(
            f"The ranking {text[:60]!r} in {where} has an empty place; remove the extra {sign}."
        )
    return ids


def _refuse_ties(ranking: Any, lists: list[list[Any]], places: Places, *, declared: bool) -> None:
    """Refuse rankings with ties or with a second sign of order, which would be parts of ids.

    A sign between two spaces always counts. Without spaces it may belong to an id, such as
    ``lr=0.1``, unless both of its sides are items. Declared items are ids as they are.
    """
    items = {item for one in lists for item in one if isinstance(item, str)}
    tied = set() if declared else {item for item in items if _looks_tied(item, items)}
    if not tied and not any(isinstance(item, list | tuple) for one in lists for item in one):
        return
    texts = to_numpy(ranking).tolist()
    for row, (value, one) in enumerate(zip(texts, lists, strict=True)):
        nested = [item for item in one if isinstance(item, list | tuple)]
        written = isinstance(value, str) and not value.strip().startswith("[")
        if nested or (written and not tied.isdisjoint(one)):
            shown = value if isinstance(value, str) else json.dumps(value, default=str)
            as_list = "" if nested else "; write a JSON list if the sign belongs to a name"
            raise DataError(
                f"The ranking {shown[:60]!r} in {places.where(_only(row, len(lists)))} has a tie "
                "or two directions, and a ranking has one order; break the tie, or give "
                f"comparisons of two items with {option('type', 'pairs')}, which allow "
                f"ties{as_list}."
            )


def _looks_tied(item: str, items: set[str]) -> bool:
    """Return whether an id looks like several items."""
    if item.startswith("=") or _SPACED.search(item):
        return True
    parts = [part.strip() for part in _TIE.split(item)]
    return len(parts) > 1 and items.issuperset(parts)


def _only(row: int, size: int) -> NDArray[np.bool_]:
    mask = np.zeros(size, dtype=bool)
    mask[row] = True
    return mask


def _item_codes(
    lists: list[list[Any]], items: Any, places: Places
) -> tuple[list[tuple[int, ...]], NDArray[Any]]:
    """Return each ranking as codes, and the ids; an item twice in a ranking is an error."""
    flat = [item for one in lists for item in one]
    column = encode(flat, "item")
    vocabulary, codes = column.vocabulary, column.codes
    if items is not None:
        vocabulary = distinct_ids(items, "items")
        place = lookup(column.vocabulary, vocabulary)
        if (place < 0).any():
            strange = column.vocabulary[int(np.argmax(place < 0))]
            raise DataError(
                f"Item {strange!r} is not among the declared items; correct it, or add it to items."
            )
        codes = place[codes]
    listed, found, start = codes.tolist(), [], 0
    for row, one in enumerate(lists):
        entry = tuple(listed[start : start + len(one)])
        start += len(one)
        where = places.where(_only(row, len(lists)))
        if min(entry) < 0:
            raise DataError(f"A ranking has an empty item in {where}; fill it in or remove it.")
        if len(set(entry)) < len(entry):
            twice = next(a for k, a in enumerate(entry) if a in entry[:k])
            raise DataError(
                f"Item {vocabulary[twice]!r} is twice in the ranking in {where}; keep one."
            )
        found.append(entry)
    return found, vocabulary


def columns_from_long(task: Any, worker: Any, item: Any, rank: Any) -> tuple[Any, Any, Any]:
    """Return columns of task, worker and ranking from one row per ranked item."""
    check_lengths({"task": task, "worker": worker, "item": item, "rank": rank})
    ids, places = to_numpy(item).tolist(), np.asarray(rank, dtype=np.float64)
    if np.isnan(places).any():
        row = int(np.argmax(np.isnan(places))) + 1
        raise DataError(f"The rank is missing in row {row}; fill it in or remove the row.")
    tasks, workers = to_numpy(task).tolist(), to_numpy(worker).tolist()
    groups: dict[tuple[Any, Any], list[tuple[float, int]]] = {}
    for row, key in enumerate(zip(tasks, workers, strict=True)):
        groups.setdefault(key, []).append((float(places[row]), row))
    rankings = []
    for (one_task, one_worker), entries in groups.items():
        entries.sort()
        for (first, above), (second, row) in pairwise(entries):
            if first == second:
                raise DataError(
                    f"Worker {one_worker!r} gives two items of task {one_task!r} the rank "
                    f"{first:g}, in rows {above + 1} and {row + 1}; ranks must differ."
                )
        rankings.append([ids[row] for _, row in entries])
    keys = list(groups)
    return [key[0] for key in keys], [key[1] for key in keys], rankings
