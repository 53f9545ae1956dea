"""Wide tables as cleanlab has them: a row per task, a column per worker, and gaps.

The first column names the tasks if it is called so or has no name; else they are numbered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wisecrowd.io.formats import FORMATS, SUFFIXES, Request, load_reader
from wisecrowd.io.inventory import HUMAN
from wisecrowd.io.platforms.values import pick_question
from wisecrowd.io.sources import Source

TASK_NAMES = ("", "task", "task_id", "id", "item", "item_id", "index", "example", "unit")
_MISSING = ("", "nan", "NaN", "<NA>")


def read(source: Source, request: Request) -> Iterator[dict[str, Any]]:
    """Yield the cells that hold a label, one worker's column after the other."""
    import pyarrow as pa
    import pyarrow.compute as pc

    inner = Request({}, request.encoding)
    plain = load_reader(FORMATS[SUFFIXES.get(source.suffix, "csv")])
    parts = [pa.table(dict(batch)) for batch in plain(source, inner)]
    if not parts:
        return
    table = pa.concat_tables(parts)
    names = list(table.column_names)
    asked = request.asked.get("task")
    first = names[0] if names[0].lower() in TASK_NAMES else None
    task_column = pick_question(asked, names, source) if asked is not None else first
    if task_column is None:
        tasks = pa.array([str(row) for row in range(len(table))], pa.large_string())
    else:
        tasks = _texts(table.column(task_column))
    request.found |= {"task": task_column or "row number"}
    for worker in names:
        if worker == task_column:
            continue
        labels = _texts(table.column(worker))
        present = pc.invert(pc.is_in(labels, pa.array([*_MISSING, None], pa.large_string())))
        labels = labels.filter(present)
        size = len(labels)
        yield {
            "task": tasks.filter(present),
            "worker": pa.repeat(pa.scalar(worker, pa.large_string()), size),
            "label": labels,
            "worker_kind": pa.repeat(pa.scalar(HUMAN, pa.large_string()), size),
            "timestamp": pa.nulls(size, pa.timestamp("us")),
            "duration": pa.nulls(size, pa.float64()),
            "cost": pa.nulls(size, pa.float64()),
        }


def _texts(column: Any) -> Any:
    """Return a column as text; whole numbers that gaps made decimal (1.0) are whole again."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type):
        whole = pc.all(pc.equal(column, pc.round(column))).as_py() is not False
        return column.cast(pa.int64() if whole else column.type).cast(pa.large_string())
    text = column.cast(pa.large_string())
    if pc.all(pc.match_substring_regex(text.drop_null(), r"^(\d+\.0|nan|NaN|)$")).as_py():
        return pc.replace_substring_regex(text, r"\.0$", "")
    return text
