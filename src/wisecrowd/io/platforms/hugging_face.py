"""Hugging Face data sets in which every task has a list of workers and a list of labels.

Parquet, the folder of ``save_to_disk``, JSON and JSON lines; the names of classes are taken from
the data set's own description.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.io.formats import Request
from wisecrowd.io.platforms.label_records import Event, LabelRecord, reader
from wisecrowd.io.platforms.list_columns import rows_of
from wisecrowd.io.platforms.values import pick_question
from wisecrowd.io.sources import Source

WORKERS = ("workers", "worker_ids", "annotators", "annotator_ids", "raters", "rater_ids", "users",
           "user_ids", "worker_id", "annotator_id", "rater_id")  # fmt: skip
_TASKS = ("id", "task_id", "task", "item_id", "idx", "index", "uid")


@reader
def read(source: Source, request: Request) -> Iterator[Event]:
    """Yield one judgement per entry of the two lists."""
    rows = rows_of(source, request)
    first = next(rows, {})
    header = list(first)
    worker = _worker_column(header, source, request)
    task = request.asked.get("task") or next((name for name in _TASKS if name in header), None)
    if task is not None and task not in header:
        pick_question(task, header, source)
    label: str | None = None
    for number, row in enumerate(chain([first], rows), start=1):
        workers = row.get(worker) or []
        if label is None and workers and isinstance(workers, list):
            label = _label_column(row, worker, source, request)
            request.found |= {"task": task or "row number", "worker": worker, "label": label}
        labels = row.get(label or "") or []
        if not isinstance(workers, list) or not isinstance(labels, list):
            raise DataError(f"{source.name}: row {number} has no lists; give a plain table format.")
        if len(workers) != len(labels):
            raise DataError(
                f"{source.name}: row {number} has {len(workers)} workers and {len(labels)} labels; "
                "each label needs its worker."
            )
        for who, what in zip(workers, labels, strict=True):
            yield LabelRecord(row.get(task) if task else str(number - 1), who, what, label or "")


def _worker_column(header: list[str], source: Source, request: Request) -> str:
    known = [name for name in header if name in WORKERS]
    if request.asked.get("worker") is not None:
        return pick_question(request.asked["worker"], header, source)
    if len(known) != 1:
        raise DataError(
            f"{source.name} has {len(known)} columns that look like lists of workers; name it with "
            + for_reader("worker='...'.", "--worker NAME.")
        )
    return known[0]


def _label_column(row: dict[str, Any], worker: str, source: Source, request: Request) -> str:
    """Return the list that is as long as the list of workers."""
    size = len(row[worker])
    lists = [
        name
        for name, value in row.items()
        if name != worker and isinstance(value, list) and len(value) == size
    ]
    if not lists:
        raise DataError(f"{source.name} has no list of labels as long as {worker!r}; export both.")
    return pick_question(request.question, lists, source)
