"""Content that is more often a misread file than meant: it is questioned, and may be accepted.

One worker in all rows, a worker of its own for every task, and one answer in all rows are what a
file looks like whose columns are taken for something else. Readers of tables therefore refuse such
content in files of many rows, unless ``accept`` names it. Platforms that record their workers are
believed, and the user is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wisecrowd.core.columns import ALIASES, SECOND_CHOICE, listed, plain_name
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import Encoded
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.messages.option_spelling import for_reader, option
from wisecrowd.io.formats import FORMATS, Request, name_of, reader_for
from wisecrowd.io.sources import Source
from wisecrowd.kinds import LABELS, NUMBERS, ORDERED, SETS, TEXTS

ONE_WORKER, WORKER_PER_TASK, ONE_ANSWER = "one-worker", "worker-per-task", "one-answer"
ACCEPTABLE = (ONE_WORKER, WORKER_PER_TASK, ONE_ANSWER)
MANY = 10  # rows, and tasks with a worker of their own, from which on content is questioned
# Formats that are tables: their columns are guessed or named, not written by a platform.
TABLES = ("wide", "cleanlab", "crowd-kit", "hugging-face")
_COMPARED = (LABELS, ORDERED, SETS, NUMBERS, TEXTS)  # kinds whose rows hold one answer each
_SEPARATORS = frozenset("|,;")
_FEW = 20  # distinct answers that may be spellings of one
_LOOKED_AT = 10_000  # rows of unread columns
# Parts of names of columns that hold workers.
_WORKER_WORDS = (
    *ALIASES["worker"], *SECOND_CHOICE["worker"],
    "annot", "reader", "expert", "doctor", "person", "email", "login", "initials", "author", "who",
)  # fmt: skip


# What to do where no other column can be meant.
_MORE = {
    ONE_WORKER: "add the files of the other workers",
    WORKER_PER_TASK: "give every worker one id in all rows",
    ONE_ANSWER: "add the rows with other answers",
}


class Doubt(NamedTuple):
    """Questionable content: its name among ``ACCEPTABLE``, what is so, and what may be wrong."""

    name: str
    sentence: str
    remedy: str


class MisreadError(DataError):
    """A file has content that is more often a misreading than meant."""


def accepted_names(accept: Any, classes: Any = None) -> frozenset[str]:
    """Return the names of accepted content, or say which there are.

    Where the user declares ``classes``, one of them may be the only answer.

    Examples
    --------
    >>> sorted(accepted_names(["one-worker", "one-answer"]))
    ['one-answer', 'one-worker']
    """
    given = (accept,) if isinstance(accept, str) else accept
    if not isinstance(given, Iterable):
        raise ParameterError(f"accept is {accept!r}; give one of {', '.join(ACCEPTABLE)}.")
    names = [name.strip() if isinstance(name, str) else name for name in given]
    for name in names:
        if name not in ACCEPTABLE:
            given, hint = for_reader("accept", "--accept"), suggestion(str(name), ACCEPTABLE)
            raise ParameterError(f"{given} has {name!r}{hint}; there are {', '.join(ACCEPTABLE)}.")
    return frozenset(names if classes is None else [*names, ONE_ANSWER])


def doubt_workers(values: Mapping[str, Any], request: Request) -> None:
    """Question the workers of all rows, before any are left out.

    Parameters
    ----------
    values : mapping of role to Encoded or Arrow column
    request : Request
        What was asked for and found; columns are described by it.
    """
    worker, task = values.get("worker"), values.get("task")
    if not isinstance(worker, Encoded) or len(worker.codes) < MANY or (worker.codes < 0).any():
        return
    n_workers = len(worker.vocabulary)
    if n_workers == 1 and len(request.layout.workers or ()) != 1:  # not a column that is named
        question(one_worker(len(worker.codes), worker.vocabulary.tolist()[0], request), request)
    if not isinstance(task, Encoded) or min(n_workers, len(task.vocabulary)) < MANY:
        return
    own = np.full(n_workers, -1, dtype=task.codes.dtype)
    own[worker.codes] = task.codes
    if (own[worker.codes] == task.codes).all():
        question(worker_per_task(n_workers, request), request)


def doubt_counts(
    n_rows: int, workers: Sequence[Any], answers: Sequence[Any], request: Request
) -> None:
    """Question what is known of rows that are not in memory: their workers and answers."""
    if n_rows >= MANY and len(workers) == 1 and "worker" in request.found:
        question(one_worker(n_rows, workers[0], request), request)
    question(one_answer(n_rows, answers, request), request)


def one_worker(n_rows: int, worker: Any, request: Request) -> Doubt:
    """Return the doubt about rows that all have one worker."""
    assumed = request.inventory.assumed_worker
    column = request.found.get("worker", "worker")
    why = f"the column {column!r} holds nothing else" if not request.inventory.formats else ""
    why = assumed or why
    sentence = f"all {n_rows} rows are by one worker, {worker!r}" + (f" ({why})" if why else "")
    return Doubt(ONE_WORKER, sentence, "")


def worker_per_task(n_workers: int, request: Request) -> Doubt:
    """Return the doubt about workers with one task each."""
    column = request.found.get("worker", "worker")
    sentence = (
        f"none of the {n_workers} workers has a second task, so {column!r} may hold ids of rows "
        "and not of workers"
    )
    return Doubt(WORKER_PER_TASK, sentence, "")


def doubt_answers(values: Mapping[str, Any], request: Request) -> None:
    """Question the answers in all rows, where a row holds one answer."""
    column = values.get(request.answer_role)
    if request.kind.name not in _COMPARED or column is None:
        return
    if isinstance(column, Encoded):
        if not (column.codes < 0).any():
            question(one_answer(len(column.codes), column.vocabulary.tolist(), request), request)
    else:
        question(one_answer(len(column), _distinct(column), request), request)


def one_answer(n_rows: int, distinct: Sequence[Any], request: Request) -> Doubt | None:
    """Return the doubt about rows that all have one answer, however it is spelled."""
    if n_rows + request.inventory.blank_cells < MANY or len(distinct) > _FEW:
        return None
    spellings = {str(one).strip().casefold() for one in distinct}
    if len(spellings) != 1:
        return None
    if request.kind.container.lists and _SEPARATORS & set(str(distinct[0])):  # a set of several
        return None
    sentence = f"all {n_rows} rows have the same answer, {distinct[0]!r}"
    blank = request.inventory.blank_cells
    if not blank:
        return Doubt(ONE_ANSWER, sentence, "")
    sentence = f"all cells with a label have the same one, {distinct[0]!r}, and {blank} are blank"
    return Doubt(ONE_ANSWER, sentence, "if a blank is an answer, write a word such as no into it")


def _distinct(column: Any) -> list[Any]:
    import pyarrow as pa

    try:
        found: list[Any] = column.unique().slice(0, _FEW + 1).to_pylist()
    except pa.ArrowException:  # lists
        found = list(dict.fromkeys(map(str, column.slice(0, _LOOKED_AT).to_pylist())))
    return found


def question(doubt: Doubt | None, request: Request) -> None:
    """Note questionable content that is accepted or that a platform recorded; keep other doubts."""
    if doubt is None:
        return
    if doubt.name in request.accepted or is_recorded(request):
        request.note(doubt.sentence)
    else:
        request.doubts.append(doubt)


def refuse_doubts(
    request: Request, sources: list[Source], format: str, *, about_answers: bool
) -> None:
    """Refuse doubtful workers or answers; answers are checked by their kind before."""
    for doubt in (one for one in request.doubts if (one.name == ONE_ANSWER) == about_answers):
        remedy = doubt.remedy or _other_column(doubt, request, _table(sources[0], format, request))
        where = sources[0].name if len(sources) == 1 else f"The {len(sources)} files"
        raise MisreadError(
            f"{where}: {doubt.sentence}; {remedy}, or give {option('accept', doubt.name)} if the "
            "file is right."
        )


def _table(source: Source, format: str, request: Request) -> dict[str, list[Any]]:
    """Return the first rows of all columns of a plain table, nothing of other files."""
    import pyarrow as pa

    if source.path is None or not source.path.is_file():  # a pipe cannot be read again
        return {}
    try:
        if name_of(source, format, request.layout) not in FORMATS:
            return {}
        everything = Request({}, request.encoding, layout=request.layout, lists=True)
        batch = next(iter(reader_for(source, format, request.layout)(source, everything)), {})
        return {name: column.slice(0, _LOOKED_AT).to_pylist() for name, column in batch.items()}
    except (DataError, ParameterError, pa.ArrowException):  # records, or two columns of one name
        return {}


def is_recorded(request: Request) -> bool:
    """Tell whether a platform wrote who labelled what, so that nothing was guessed."""
    formats = request.inventory.formats
    guessed = not formats or any(name in TABLES for name in formats)
    return not guessed and not request.inventory.assumed_worker


def _other_column(doubt: Doubt, request: Request, unread: Mapping[str, list[Any]]) -> str:
    """Return what to do about it: the column that may be meant, if one looks so."""
    if request.inventory.assumed_worker:
        return request.inventory.name_workers
    role = "label" if doubt.name == ONE_ANSWER else "worker"
    used = set(request.found.values())
    tasks = unread.get(request.found.get("task", ""), [])
    others = {name: values for name, values in unread.items() if name not in used}
    if role == "worker":
        found = worker_like(others, tasks)
    else:
        found = [name for name, values in others.items() if 2 <= len(set(map(str, values))) <= _FEW]
    if found:
        verb = "holds" if len(found) == 1 else "hold"
        return f"if {listed(found)} {verb} the {role}s, give {option(role, found[0])}"
    if not others:
        return _MORE[doubt.name]
    return f"name the column of the {role}s with " + for_reader(f"{role}='...'", f"--{role} NAME")


def worker_like(columns: Mapping[str, Sequence[Any]], tasks: Sequence[Any]) -> list[str]:
    """Return the names of the columns that look like those of workers, the likeliest first.

    Workers have several tasks each, and tasks that have several rows have several workers.

    Examples
    --------
    >>> columns = {"part": [1, 1, 2, 2], "who": ["ann", "bob", "ann", "bob"]}
    >>> worker_like(columns, ["a", "a", "b", "b"])
    ['who']
    """
    ids = [str(one) for one in tasks]
    found = [name for name, values in columns.items() if _may_be_workers(name, values, ids)]
    return sorted(found, key=lambda name: not _is_worker_name(name))


def _may_be_workers(name: str, values: Sequence[Any], tasks: Sequence[Any]) -> bool:
    if any(isinstance(one, bool | float | list | dict) for one in values):
        return False
    ids = [None if one is None else str(one).strip() for one in values]
    distinct = set(ids)
    if len(distinct) < 2 or 2 * len(distinct) > len(ids) or distinct & {None, ""}:
        return False
    if len(tasks) != len(ids):
        return _is_worker_name(name)
    pairs = len(set(zip(tasks, ids, strict=True)))
    several = len(set(tasks)) < len(tasks)
    differs = pairs > len(set(tasks)) if several else _is_worker_name(name)
    return differs and pairs >= 2 * len(distinct)


def _is_worker_name(name: str) -> bool:
    plain = plain_name(name)
    return any(word in plain for word in _WORKER_WORDS)
