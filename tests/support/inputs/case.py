"""What an input case is: data in every form it can come in, and what a method must make of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

N_TASKS, N_WORKERS = 12, 4
TASKS = tuple(f"t{i:02d}" for i in range(N_TASKS))
WORKERS = ("ann", "bob", "cem", "dee")
CLASSES = ("cat", "dog")
# (task, worker) pairs that say the other class, so that no worker is perfect on every class and
# every task still has a majority of three to one.
DISSENT = ((0, 3), (3, 2), (5, 3), (8, 0))


@dataclass(frozen=True)
class Verdict:
    """What must come of an input.

    Attributes
    ----------
    kind : {"right", "rejected", "warned"}
    words : tuple of str
        What the error or the warning must contain: the column, the place, the remedy.
    shell_words : tuple of str, optional
        The same on the command line, where it differs.
    labels : mapping of task to class, optional
        The labels that must come out.
    may_refuse : bool
        Whether a method may refuse the data instead, saying why: some need more workers, some
        have no memory for so many classes.
    """

    kind: str
    words: tuple[str, ...] = ()
    shell_words: tuple[str, ...] | None = None
    labels: Mapping[Any, Any] | None = None
    may_refuse: bool = False


@dataclass(frozen=True, kw_only=True)
class Given:
    """One input, as Python gets it and as the command line does; None where it gets none.

    Attributes
    ----------
    data : object
        What ``fit`` takes; with ``reading`` what the constructors of CrowdLabels take.
    reading : mapping
        Options of those constructors.
    fit, params : mapping
        Options of ``fit`` and parameters of the method.
    file : (name, content)
        The annotations for the command line.
    gold : bytes
        The content of the file for ``--gold``.
    arguments : tuple of str
        More arguments of ``wisecrowd aggregate``.
    """

    data: Any = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    fit: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    file: tuple[str, bytes] | None = None
    gold: bytes | None = None
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class InputCase:
    """A named input and its verdict; ``make`` builds it when it is asked for.

    ``costly`` marks sizes that belong to a benchmark rather than to a quick test, ``needs`` the
    library that a case is made with.
    """

    name: str
    verdict: Verdict
    make: Callable[[], Given]
    costly: bool = False
    needs: str | None = None


def right(labels: Mapping[Any, Any] | None = None, *, may_refuse: bool = False) -> Verdict:
    """Return the verdict on a legitimate input; by default the labels are the base crowd's."""
    return Verdict("right", labels=expected() if labels is None else labels, may_refuse=may_refuse)


def rejected(*words: str, shell: Sequence[str] | None = None) -> Verdict:
    """Return the verdict on a bad input, with the words that its refusal must contain."""
    return Verdict("rejected", words, None if shell is None else tuple(shell))


def warned(
    *words: str, labels: Mapping[Any, Any] | None = None, shell: Sequence[str] | None = None
) -> Verdict:
    """Return the verdict on an input that may be a mistake: an answer and a warning."""
    return Verdict(
        "warned",
        words,
        None if shell is None else tuple(shell),
        expected() if labels is None else labels,
    )


# ---------------------------------------------------------------------------------- the base crowd


def _named(given: Sequence[Any], default: Sequence[str]) -> list[Any]:
    return [*given, *default[len(given) :]]


def columns(
    tasks: Sequence[Any] = (), workers: Sequence[Any] = (), classes: Sequence[Any] = ()
) -> dict[str, list[Any]]:
    """Return the base crowd as a long table; the first few ids may be others."""
    task_ids, worker_ids = _named(tasks, TASKS), _named(workers, WORKERS)
    class_ids = _named(classes, CLASSES)
    pairs = [(i, j) for i in range(N_TASKS) for j in range(N_WORKERS)]
    return {
        "task": [task_ids[i] for i, _ in pairs],
        "worker": [worker_ids[j] for _, j in pairs],
        "label": [class_ids[(i + ((i, j) in DISSENT)) % 2] for i, j in pairs],
    }


def expected(tasks: Sequence[Any] = (), classes: Sequence[Any] = ()) -> dict[Any, Any]:
    """Return the label of every task of the base crowd."""
    task_ids, class_ids = _named(tasks, TASKS), _named(classes, CLASSES)
    return {task_ids[i]: class_ids[i % 2] for i in range(N_TASKS)}


def replaced(role: str, rows: Sequence[int], value: Any, **names: Any) -> dict[str, list[Any]]:
    """Return the base crowd with another value in some rows of a column."""
    table = columns(**names)
    for row in rows:
        table[role][row] = value
    return table


# ------------------------------------------------------------------------------------------- files


def csv_of(
    table: Mapping[str, Sequence[Any]],
    name: str = "a.csv",
    *,
    separator: str = ",",
    line_end: str = "\n",
    encoding: str = "utf-8",
) -> tuple[str, bytes]:
    """Return a table as a csv file."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, lineterminator=line_end)
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    return name, text.getvalue().encode(encoding)


def parquet_of(table: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return a table as a parquet file, types and all."""
    import pyarrow as pa
    from pyarrow.parquet import write_table

    sink = io.BytesIO()
    write_table(pa.table({name: pa.array(values) for name, values in table.items()}), sink)
    return "a.parquet", sink.getvalue()


def table_case(
    name: str,
    verdict: Verdict,
    table: Mapping[str, Sequence[Any]] | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    **given: Any,
) -> InputCase:
    """Return a case of a long table of text, which is also a csv file."""
    chosen = columns() if table is None else table
    if options is not None:
        given |= {"reading": options}

    def make() -> Given:
        return Given(**({"data": dict(chosen), "file": csv_of(chosen)} | given))

    return InputCase(name=name, verdict=verdict, make=make)


def typed_case(
    name: str,
    verdict: Verdict,
    make_table: Callable[[], Mapping[str, Any]],
    **given: Any,
) -> InputCase:
    """Return a case of columns with types of their own, which is also a parquet file."""

    def make() -> Given:
        table = make_table()
        data = tuple(table[role] for role in ("task", "worker", "label"))
        return Given(**({"data": data, "file": parquet_of(table)} | given))

    return InputCase(name=name, verdict=verdict, make=make)


def python_case(
    name: str, verdict: Verdict, make: Callable[[], Any], *, needs: str | None = None, **given: Any
) -> InputCase:
    """Return a case that only Python can be given."""
    return InputCase(
        name=name, verdict=verdict, make=lambda: Given(data=make(), **given), needs=needs
    )


def file_case(
    name: str, verdict: Verdict, file: tuple[str, bytes] | None = None, **given: Any
) -> InputCase:
    """Return a case that only the command line can be given."""
    content = csv_of(columns()) if file is None else file
    return InputCase(name=name, verdict=verdict, make=lambda: Given(file=content, **given))
