"""Exports that are tables: the needed columns of a csv or tsv file, as Arrow text."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wisecrowd.core.exceptions import DataError
from wisecrowd.io.delimited import read_csv, read_tsv
from wisecrowd.io.formats import Request
from wisecrowd.io.platforms.values import as_numbers, as_times, pick_question, unknown_details
from wisecrowd.io.sources import Source

Pick = Callable[[list[str]], Mapping[str, str]]
_TEXT_ROLES = ("task", "worker", "label")


@dataclass
class _Picked(Request):
    """A request whose columns the platform picks."""

    pick: Pick = field(kw_only=True)

    def choose(self, header: list[str], source: Source, *_: Any, **__: Any) -> dict[str, str]:
        """Return the platform's choice of columns."""
        return dict(self.pick(header))


def read_sheet(source: Source, request: Request, pick: Pick) -> Any:
    """Return a pyarrow table of the columns that ``pick`` chooses from the header, as text.

    Parameters
    ----------
    source : Source
    request : Request
    pick : callable
        Takes the header, returns the column of each name that the table is to have.
    """
    import pyarrow as pa

    columns: dict[str, str] = {}

    def remembered(header: list[str]) -> Mapping[str, str]:
        columns.update(pick(header))
        require_names(columns.values(), header, source)
        return columns

    inner = _Picked({}, request.encoding, pick=remembered)
    read = read_tsv if source.suffix in (".tsv", ".tab") else read_csv
    parts = [pa.table(dict(batch)) for batch in read(source, inner)]
    for role in _TEXT_ROLES:
        request.restored.setdefault(role, Counter()).update(inner.restored.get(role, {}))
    request.found = {**request.found, **{r: c for r, c in columns.items() if r in _TEXT_ROLES}}
    if not parts:
        return pa.table({name: pa.array([], pa.string()) for name in columns})
    return pa.concat_tables(parts)


def require_names(names: Iterable[str], header: list[str], source: Source) -> None:
    """Refuse a header without one of the names."""
    for name in names:
        if name not in header:
            close = difflib.get_close_matches(name, header, n=1)
            raise DataError(
                f"{source.name} has no column {name!r}"
                + (f"; did you mean {close[0]!r}?" if close else "; export it again.")
            )


def keep(table: Any, mask: Any, reason: str, request: Request) -> Any:
    """Return the rows where the mask is true; the others are counted with the reason."""
    kept = table.filter(mask)
    request.inventory.drop(reason, len(table) - len(kept))
    return kept


def keep_status(table: Any, kept: list[str], reason: str, request: Request) -> Any:
    """Return the rows whose column ``status``, if there is one, holds a word to keep."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if "status" not in table.column_names:
        return table
    status = pc.utf8_lower(table.column("status"))
    return keep(table, pc.is_in(status, pa.array(kept)), reason, request)


def is_blank(column: Any) -> Any:
    """Tell which texts are empty."""
    import pyarrow.compute as pc

    return pc.equal(pc.utf8_trim_whitespace(column), "")


def is_true(column: Any) -> Any:
    """Tell which texts say yes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pa.array(["true", "1", "yes", "t"])
    return pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(column)), words)


def judged_column(table: Any, candidates: list[str], request: Request, source: Source) -> str:
    """Return the column with the labels, in the table ``label NAME``, and take it as the question.

    Where several could be, it is the one that differs between rows of one task: workers made it,
    whereas the data of the task repeat.
    """
    if len(candidates) > 1:
        n_tasks = table.select(["task"]).group_by("task").aggregate([]).num_rows
        differ = [name for name in candidates if _n_pairs(table, f"label {name}") > n_tasks]
        candidates = differ or candidates
    question = pick_question(request.question, candidates, source)
    request.inventory.settle(question, source.name)
    request.found["label"] = question
    return question


def _n_pairs(table: Any, name: str) -> int:
    pairs = table.select(["task", name]).group_by(["task", name]).aggregate([])
    return int(pairs.num_rows)


def take_gold(table: Any, column: str, request: Request) -> None:
    """Keep the classes that a column, if there is one, gives for tasks as gold."""
    import pyarrow.compute as pc

    if column not in table.column_names:
        return
    known = table.filter(pc.invert(is_blank(table.column(column)))).select(["task", column])
    pairs = known.group_by(["task", column]).aggregate([])
    for task, label in zip(*(pairs.column(c).to_pylist() for c in ("task", column)), strict=True):
        request.inventory.add_gold(task, label)


def seconds_spent(table: Any) -> Any:
    """Return the seconds between the columns ``started`` and ``timestamp``, null where unknown."""
    import numpy as np
    import pyarrow as pa

    if not {"started", "timestamp"} <= set(table.column_names):
        return pa.nulls(len(table), pa.float64())
    start, end = (
        as_times(table.column(name)).to_numpy(zero_copy_only=False)
        for name in ("started", "timestamp")
    )
    return pa.array((end - start) / np.timedelta64(1, "s"), from_pandas=True)


def finished(table: Any, request: Request, **made: Any) -> dict[str, Any]:
    """Return the columns of a batch; rows without task, worker or label are dropped.

    Parameters
    ----------
    table : pyarrow.Table
    request : Request
    **made : Arrow array
        Columns to add to the table, or to replace in it.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pa.table({name: table.column(name) for name in table.column_names} | made)
    for role in _TEXT_ROLES:
        missing = is_blank(table.column(role))
        reason = "without a label" if role == "label" else f"without a {role} id"
        table = keep(table, pc.invert(missing), reason, request)
    batch = {role: table.column(role).cast(pa.large_string()) for role in _TEXT_ROLES}
    batch |= unknown_details(len(table))
    for role, convert in (("timestamp", as_times), ("duration", as_numbers), ("cost", as_numbers)):
        if role in table.column_names:
            column = table.column(role)
            batch[role] = column if column.type == batch[role].type else convert(column)
    return batch
