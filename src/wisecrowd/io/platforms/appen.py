"""Appen / Figure Eight / CrowdFlower: the "full report" csv, one row per judgment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wisecrowd.core.exceptions import DataError
from wisecrowd.io.formats import Request
from wisecrowd.io.platforms import Platform
from wisecrowd.io.platforms.label_records import refuse_without_workers
from wisecrowd.io.platforms.sheets import (
    finished,
    is_true,
    judged_column,
    keep,
    read_sheet,
    seconds_spent,
    take_gold,
)
from wisecrowd.io.platforms.values import pick_question
from wisecrowd.io.sources import Source

_EXTRA = {
    "worker": "_worker_id", "tainted": "_tainted", "golden": "_golden",
    "timestamp": "_created_at", "started": "_started_at",
}  # fmt: skip
_GOLD = "_gold"


def read(source: Source, request: Request) -> Iterator[dict[str, Any]]:
    """Yield judgments that are not tainted, and the gold of test questions."""
    import pyarrow.compute as pc

    candidates: list[str] = []

    def pick(header: list[str]) -> Mapping[str, str]:
        if "_worker_id" not in header:
            raise refuse_without_workers(source, "download the full report, not the aggregated one")
        candidates.extend(_candidates(header, source, request))
        columns = {role: name for role, name in _EXTRA.items() if name in header}
        columns["task"] = request.asked.get("task") or "_unit_id"
        for name in candidates:
            columns[f"label {name}"] = name
            if name + _GOLD in header:
                columns[f"gold {name}"] = name + _GOLD
        return columns

    table = read_sheet(source, request, pick)
    question = judged_column(table, candidates, request, source)
    gold = f"gold {question}"
    if gold in table.column_names:
        take_gold(_sure(table, gold), gold, request)
    if "tainted" in table.column_names:
        untainted = pc.invert(is_true(table.column("tainted")))
        table = keep(table, untainted, "tainted (their workers failed test questions)", request)
    label = table.column(f"label {question}")
    yield finished(table, request, label=label, duration=seconds_spent(table))


PLATFORM = Platform(read, "_unit_id", "_worker_id", "question", ("task", "label"))


def _candidates(header: list[str], source: Source, request: Request) -> list[str]:
    """Return the columns that may be the question: those with gold, else all that are not Appen's.

    Among the latter only judgments differ within a unit; the unit's own data do not.
    """
    if request.question is not None:
        return [pick_question(request.question, [c for c in header if c[:1] != "_"], source)]
    with_gold = [name for name in header if name + _GOLD in header]
    if with_gold:
        return [pick_question(None, with_gold, source)]
    own = (_GOLD, _GOLD + "_reason")
    found = [c for c in header if c[:1] != "_" and c[:6] != "orig__" and not c.endswith(own)]
    if not found:
        raise DataError(f"{source.name} has no column with judgments; download the full report.")
    return found


def _sure(table: Any, column: str) -> Any:
    """Return the test questions that have one right class: Appen writes several on lines."""
    import pyarrow.compute as pc

    if "golden" in table.column_names:
        table = table.filter(is_true(table.column("golden")))
    return table.filter(pc.invert(pc.match_substring(table.column(column), "\n")))
