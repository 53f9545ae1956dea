"""Wide tables, as cleanlab has them: a row per task, a column per worker, and gaps.

Columns that are neither the task nor a worker are left out, and the user is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from wisecrowd.core.columns import find_columns, guess
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.io.formats import FORMATS, Request
from wisecrowd.io.limits import require_columns
from wisecrowd.io.platforms import Platform
from wisecrowd.io.platforms.values import unknown_details
from wisecrowd.io.sources import Source
from wisecrowd.kinds.classes.wide_columns import (
    WideColumns,
    choose_columns,
    label_texts,
    numbered_workers,
    require_workers,
)

_ROWS = 1 << 16  # of a batch


class _WideRequest(Request):
    """A request for the columns of a wide table: all, unless the workers are named."""

    def choose(self, header: list[str], source: Source, *_: Any, **__: Any) -> dict[str, str]:
        """Return every column that may be needed, by its own name."""
        require_columns(source.name, len(header))
        name, count = Counter(header).most_common(1)[0]
        if count > 1:
            raise DataError(f"{source.name} has {count} columns named {name!r}; rename one.")
        self.header = header
        names = header
        if self.layout.workers is not None:
            require_workers(self.layout.workers, header, self.asked.get("task"))
            workers = set(self.layout.workers)
            rest = [name for name in header if name not in workers]
            task = self.asked.get("task") or guess("task", rest)
            wanted = {*workers, task if task is not None else header[0]}
            names = [name for name in header if name in wanted]
        return {name: name for name in names}


def read(source: Source, request: Request, table: str = "csv") -> Iterator[dict[str, Any]]:
    """Yield the cells that hold a label, one worker's column after the other.

    Parameters
    ----------
    source : Source
    request : Request
    table : str
        The plain format of the file.
    """
    import pyarrow as pa

    inner = _WideRequest(request.asked, request.encoding, layout=request.layout)
    parts = _parts(source, inner, table)
    request.decimal_comma = inner.decimal_comma
    for note in inner.notes:
        request.note(note)
    if not parts:
        return
    cells = pa.concat_tables(parts)
    texts = {name: label_texts(cells.column(name)) for name in cells.column_names}
    chosen = _choose(texts, inner.header, source, request)
    for worker in chosen.workers:
        request.restored.setdefault("label", Counter()).update(inner.restored.get(worker, {}))
    if chosen.task is None:
        tasks = pa.array([str(row) for row in range(len(cells))], pa.large_string())
        request.found["task"] = "row number"
    else:
        tasks = texts[chosen.task]
        request.restored.setdefault("task", Counter()).update(inner.restored.get(chosen.task, {}))
        request.found["task"] = chosen.task or "column 1"
    request.inventory.blank_cells += sum(texts[worker].null_count for worker in chosen.workers)
    for workers in _groups(chosen.workers, len(cells)):
        present = [texts[worker].is_valid() for worker in workers]
        labels = [texts[w].filter(mask) for w, mask in zip(workers, present, strict=True)]
        names = pa.array(workers, pa.large_string())
        repeated = np.repeat(np.arange(len(workers)), [len(column) for column in labels])
        yield {
            "task": _joined([tasks.filter(mask) for mask in present]),
            "worker": names.take(pa.array(repeated)),
            "label": _joined(labels),
            **unknown_details(len(repeated)),
        }


PLATFORM = Platform(read, "row", "column name", "cell", ("task",))


def _groups(workers: Sequence[str], n_tasks: int) -> Iterator[Sequence[str]]:
    """Yield workers in groups, so that thousands of short columns are not a batch each."""
    size = max(_ROWS // max(n_tasks, 1), 1)
    return (workers[start : start + size] for start in range(0, len(workers), size))


def _joined(columns: list[Any]) -> Any:
    import pyarrow as pa

    chunks = [
        chunk
        for column in columns
        for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])
    ]
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.large_string())


def _parts(source: Source, request: _WideRequest, table: str) -> list[Any]:
    import pyarrow as pa

    try:
        return [pa.table(dict(batch)) for batch in FORMATS[table](source, request)]
    except DataError as error:
        if source.name in str(error):
            raise
        raise DataError(f"{source.name}: {error}") from None


def _choose(
    texts: dict[str, Any], header: list[str], source: Source, request: Request
) -> WideColumns:
    """Return the columns of task and workers; what was decided becomes a remark."""
    task = request.asked.get("task")
    try:
        if task is not None:
            find_columns(header, {"task": task})
        workers = request.layout.workers
        if workers is None and request.kind.container.numeric:
            workers = tuple(numbered_workers(header, task))
        chosen = choose_columns(texts, task, workers)
    except DataError as error:
        raise DataError(f"{source.name}: {error}") from None
    used = {chosen.task, *chosen.workers}
    left_out = [name for name in header if name not in used]
    named = request.layout.workers is not None
    note = chosen._replace(left_out=tuple(left_out)).note(recognised=not named)
    if note is not None:
        request.inventory.remark(note)
    if chosen.task is None and left_out:
        request.inventory.remark(
            "tasks are numbered from 0, as no column is recognised as theirs; name it with "
            + option("task", left_out[0])
        )
    return chosen
