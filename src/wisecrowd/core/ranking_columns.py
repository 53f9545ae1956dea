"""Validation of columns of rankings: they become checked CrowdRankings."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import WORKER_KIND
from wisecrowd.core.arrow import is_missing, to_numpy
from wisecrowd.core.duplicates import arrange
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import Encoded, encode, lookup
from wisecrowd.core.ids.lookalike_ids import warn_of_lookalikes
from wisecrowd.core.messages.descriptions import Places
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.pairs import NOBODY
from wisecrowd.core.rankings import CrowdRankings
from wisecrowd.core.validation import (
    check_columns,
    check_lengths,
    complete_ids,
    distinct_ids,
    measured_columns,
    worker_kinds,
)

Rankings = TypeVar("Rankings", bound=CrowdRankings)
_TIE = re.compile(r"[=~≈,;<]")  # between items of a text that are of equal rank, or the worse first
_SPACED = re.compile(r"\s(?:=+|~|≈|<)\s")


def rankings_from_columns(
    container: type[Rankings],
    task: Any,
    worker: Any,
    *,
    ranking: Any = None,
    items: Any = None,
    tasks: Any = None,
    workers: Any = None,
    weight: Any = None,
    worker_kind: Any = None,
    duplicates: str = "auto",
    places: Places | None = None,
    notes: tuple[str, ...] = (),
    frame_library: str | None = None,
    **columns: Any,
) -> Rankings:
    """Build rankings from columns; see :meth:`CrowdRankings.from_arrays`."""
    places = places or Places({})
    check_columns(duplicates, columns)
    if ranking is None:
        raise ParameterError(f"{container.__name__} need the column ranking; give it.")
    given = {"task": task, "worker": worker, "ranking": ranking, "weight": weight,
             "worker_kind": worker_kind, **columns}  # fmt: skip
    check_lengths(given)
    lists = _parsed(ranking, places)
    _refuse_ties(ranking, lists, places, declared=items is not None)
    if not lists:
        raise DataError("There are no rankings: the table has no data rows.")
    codes, item_ids = _item_codes(lists, items, places)
    distinct = sorted(set(codes))
    place = {one: k for k, one in enumerate(distinct)}
    vote = np.array([place[one] for one in codes], dtype=np.int32)
    if task is None:
        task = [" | ".join(sorted(str(item_ids[a]) for a in one)) for one in codes]
    task_codes, task_ids = complete_ids(task, "task", places, declared=tasks)
    if worker is None:
        worker = Encoded(np.zeros(len(codes), np.int32), np.array([NOBODY], dtype=object))
    worker_codes, worker_ids = complete_ids(worker, "worker", places, declared=workers)
    notes = (*notes, *warn_of_lookalikes(task_ids[:0], worker_ids, item_ids, values="items"))
    kinds = worker_kinds(worker_kind, worker_codes, worker_ids, places)
    table = arrange(
        (task_codes, worker_codes, vote), (len(task_ids), len(worker_ids), len(distinct)), None,
        measured_columns({**columns, "weight": weight}, places),
        "keep" if duplicates == "auto" else duplicates, places,
    )  # fmt: skip
    chosen = [distinct[k] for k in table.label.tolist()]
    return container(
        task=table.task, worker=table.worker, tasks=task_ids, workers=worker_ids,
        weight=table.extra.pop("weight", None),
        columns=table.extra,
        worker_columns={} if kinds is None else {WORKER_KIND: kinds},
        notes=(*notes, table.note) if table.note else notes,
        frame_library=frame_library,
        ranking=np.array([a for one in chosen for a in one], dtype=np.int32),
        pointer=np.cumsum([0, *map(len, chosen)]).astype(np.int64),
        items=item_ids,
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
