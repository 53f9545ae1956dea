"""Hugging Face data sets in which every task has a list of workers and a list of labels.

Parquet, the folder of ``save_to_disk``, JSON and JSON lines; the names of classes are taken from
the data set's own description.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.io.formats import Request
from wisecrowd.io.parquet import arrow_batches, parquet_batches
from wisecrowd.io.platforms import Platform
from wisecrowd.io.platforms.label_records import Event, LabelRecord, json_objects, reader
from wisecrowd.io.platforms.values import pick_question
from wisecrowd.io.sources import Source, opened

_ROWS = 1 << 12
_MAGIC = b"PAR1"


def rows_of(source: Source, request: Request) -> Iterator[dict[str, Any]]:
    """Yield one mapping per row; only columns of text, numbers and lists of them."""
    if source.path is not None and source.path.is_dir():
        yield from _from_folder(source.path, source)
    elif _is_parquet(source):
        yield from _from_parquet(source)
    else:
        yield from json_objects(source, request.encoding)


def _is_parquet(source: Source) -> bool:
    if source.path is None:
        return False
    with opened(source) as stream:
        return stream.read(4) == _MAGIC


def _from_parquet(source: Source) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with opened(source) as stream:
        file = stream if stream.seekable() else io.BytesIO(stream.read())
        try:
            table = pq.ParquetFile(file)
            names = _plain_columns(table.schema_arrow)
            classes = class_names(table.schema_arrow)
            for batch in parquet_batches(file, table, names, source, _ROWS):
                rows = pa.table(batch).to_pylist()
                yield from (_named(row, classes) for row in rows)
        except (pa.ArrowException, OSError, UnicodeError) as error:
            reason = str(error).split("\n")[0]
            raise DataError(
                f"{source.name} is a damaged or cut off parquet file ({reason}); write it again."
            ) from error


def _from_folder(folder: Path, source: Source) -> Iterator[dict[str, Any]]:
    """Yield the rows of what ``Dataset.save_to_disk`` wrote."""
    for batch in arrow_batches(folder, source.name):
        classes = class_names(batch.schema)
        for row in batch.select(_plain_columns(batch.schema)).to_pylist():
            yield _named(row, classes)


def _plain_columns(schema: Any) -> list[str]:
    """Return the columns that can hold ids and labels: images and records cannot."""
    import pyarrow as pa

    def is_plain(kind: Any) -> bool:
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return is_plain(kind.value_type)
        return not (pa.types.is_nested(kind) or pa.types.is_binary(kind))

    return [field.name for field in schema if is_plain(field.type)]


def class_names(schema: Any) -> dict[str, list[str]]:
    """Return the names of the classes that a data set keeps as numbers (``ClassLabel``)."""
    try:
        described = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = described.get("info", {}).get("features", {})
        found = {name: _class_names(feature) for name, feature in features.items()}
    except (ValueError, AttributeError, RecursionError):
        return {}
    return {name: names for name, names in found.items() if names}


def _class_names(feature: Any) -> list[str]:
    while isinstance(feature, list | dict):
        if isinstance(feature, list):
            feature = feature[0] if feature else None
        elif feature.get("_type") == "ClassLabel":
            return [str(name) for name in feature.get("names", [])]
        else:
            feature = feature.get("feature")
    return []


def _named(row: dict[str, Any], classes: dict[str, list[str]]) -> dict[str, Any]:
    for column, names in classes.items():
        if column in row:
            row[column] = _name_of(row[column], names)
    return row


def _name_of(value: Any, names: list[str]) -> Any:
    if isinstance(value, list):
        return [_name_of(one, names) for one in value]
    if isinstance(value, int) and 0 <= value < len(names):
        return names[value]
    return None if value == -1 else value  # -1 is how ClassLabel writes "none"


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


PLATFORM = Platform(read, "id", "list of workers", "list of labels", ("task", "worker", "label"))


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
