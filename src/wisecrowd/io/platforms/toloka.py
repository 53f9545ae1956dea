"""Toloka: the assignments tsv ("Download results"), one row per task of an assignment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wisecrowd.io.formats import Request
from wisecrowd.io.platforms import Platform
from wisecrowd.io.platforms.label_records import refuse_without_workers
from wisecrowd.io.platforms.sheets import (
    finished,
    keep_status,
    read_sheet,
    seconds_spent,
    take_gold,
)
from wisecrowd.io.platforms.values import as_numbers, pick_question
from wisecrowd.io.sources import Source

_KEPT = ["approved", "submitted", ""]
_EXTRA = {
    "worker": "ASSIGNMENT:worker_id", "status": "ASSIGNMENT:status",
    "page": "ASSIGNMENT:assignment_id", "timestamp": "ASSIGNMENT:submitted",
    "cost": "ASSIGNMENT:reward", "started": "ASSIGNMENT:started",
}  # fmt: skip


def read(source: Source, request: Request) -> Iterator[dict[str, Any]]:
    """Yield accepted and submitted labels; the reward of a page is shared out among its tasks."""

    def pick(header: list[str]) -> Mapping[str, str]:
        if _EXTRA["worker"] not in header:
            raise refuse_without_workers(
                source, "download the assignments, not the aggregated results"
            )
        outputs = _named(header, "OUTPUT:")
        asked = request.question
        question = pick_question(asked.removeprefix("OUTPUT:") if asked else None, outputs, source)
        request.inventory.settle(question, source.name)
        columns = {role: name for role, name in _EXTRA.items() if name in header}
        columns |= {"task": _task(header, source, request), "label": f"OUTPUT:{question}"}
        gold = f"GOLDEN:{question}"
        return columns | ({"gold": gold} if gold in header else {})

    table = read_sheet(source, request, pick)
    take_gold(table, "gold", request)
    table = keep_status(table, _KEPT, "rejected, skipped or expired", request)
    yield finished(table, request, **_shared_out(table))


PLATFORM = Platform(read, "INPUT:*", "ASSIGNMENT:worker_id", "OUTPUT:*", ("task", "label"))


def _named(header: list[str], prefix: str) -> list[str]:
    return [column.removeprefix(prefix) for column in header if column.startswith(prefix)]


def _task(header: list[str], source: Source, request: Request) -> str:
    """Return the task's column: the only input, else Toloka's own id of the task."""
    inputs = _named(header, "INPUT:")
    asked = request.asked.get("task")
    if asked is None and len(inputs) != 1 and "ASSIGNMENT:task_id" in header:
        return "ASSIGNMENT:task_id"
    if asked is not None and asked in header:
        return asked
    return "INPUT:" + pick_question(asked, inputs, source)


def _shared_out(table: Any) -> dict[str, Any]:
    """Return cost and duration per task: those of a page, divided by the tasks on it."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    cost = pa.nulls(len(table), pa.float64())
    if "cost" in table.column_names:
        cost = as_numbers(table.column("cost"))
    seconds = seconds_spent(table)
    if "page" not in table.column_names:
        return {"duration": seconds}
    pages = table.column("page").combine_chunks().dictionary_encode().indices.to_numpy()
    on_page = pa.array(np.bincount(pages, minlength=1)[pages].astype(np.float64))
    return {"cost": pc.divide(cost, on_page), "duration": pc.divide(seconds, on_page)}
