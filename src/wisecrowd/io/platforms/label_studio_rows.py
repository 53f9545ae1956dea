"""Label Studio's flat exports, one row per annotation: CSV, TSV and JSON_MIN.

They do not say which columns are the task's data and which a worker filled in; the latter differ
between annotations of one task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from wisecrowd.io.formats import Request
from wisecrowd.io.platforms.sheets import (
    finished,
    judged_column,
    mapped,
    read_sheet,
    with_columns,
)
from wisecrowd.io.platforms.values import as_text, pick_question
from wisecrowd.io.sources import Source
from wisecrowd.io.untrusted import json_text

_OWN = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "inner_id",
        "total_annotations", "agreement", "was_cancelled", "ground_truth")  # fmt: skip
_ROW = {"worker": "annotator", "timestamp": "created_at", "duration": "lead_time"}


def rows_of_table(source: Source, request: Request) -> Iterator[dict[str, Any]]:
    """Yield the annotations of a CSV or TSV export."""
    candidates: list[str] = []

    def pick(header: list[str]) -> Mapping[str, str]:
        columns, found = _columns(header, source, request)
        candidates.extend(found)
        return columns

    yield _batch(read_sheet(source, request, pick), candidates, source, request)


def rows_of_records(
    records: Iterable[dict[str, Any]], source: Source, request: Request
) -> Iterator[dict[str, Any]]:
    """Yield the annotations of a JSON_MIN export."""
    import pyarrow as pa

    rows = [{name: _choice(value) for name, value in record.items()} for record in records]
    header = list(dict.fromkeys(name for row in rows for name in row))
    columns, candidates = _columns(header, source, request)
    table = pa.table(
        {
            role: pa.chunked_array([pa.array([row.get(name) or "" for row in rows], pa.string())])
            for role, name in columns.items()
        }
    )
    yield _batch(table, candidates, source, request)


def _columns(
    header: list[str], source: Source, request: Request
) -> tuple[dict[str, str], list[str]]:
    """Return the columns to read by role, and those that may hold the label."""
    candidates = [name for name in header if name not in _OWN]
    if request.question is not None:
        candidates = [pick_question(request.question, candidates, source)]
    columns = {role: name for role, name in _ROW.items() if name in header}
    columns["task"] = request.asked.get("task") or "id"
    request.found |= {"task": columns["task"], "worker": _ROW["worker"]}
    return columns | {f"label {name}": name for name in candidates}, candidates


def _batch(table: Any, candidates: list[str], source: Source, request: Request) -> dict[str, Any]:
    question = judged_column(table, candidates, request, source)
    label = mapped(table.column(f"label {question}"), _choice)
    return finished(with_columns(table, {"label": label}), request)


def _choice(value: Any) -> str | None:
    """Return the text of one choice, or of several that stand in an object or in JSON."""
    decoded = json_text(value) if isinstance(value, str) else value
    if isinstance(decoded, dict):
        decoded = decoded.get("choices")
    return as_text(decoded if decoded is not None else value)
