"""Detection of the worker columns of a wide table, with one row per task.

Workers choose among the same classes, so their columns share values. A text, a link or a
measurement of the task shares few values with them, or none.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wisecrowd.core.columns import (
    ALIASES,
    OPTIONAL_ROLES,
    SECOND_CHOICE,
    TRUTH_NAMES,
    guess,
    listed,
    plain_name,
)
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.messages.option_spelling import for_reader

_JOINT = r"[ _.:/|-]+"
# Ways to split a name in two; which part is the worker is decided by the names together.
_SPLITS = (
    re.compile(r"(.+?) *[(\[](.+)[)\]]"),
    re.compile(rf"([^ _.:/|-]+){_JOINT}(.+)"),
    re.compile(rf"(.+){_JOINT}([^ _.:/|-]+)"),
    re.compile(rf"(\D*\d+){_JOINT}(.+)"),
    re.compile(rf"(.+){_JOINT}([^\d _.:/|-]+[ _-]?\d+)"),
)
_ENUMERATED = re.compile(r"(.*?)[ _-]*\d+")
# Words for workers; with numbers they are names of workers, not of questions.
_WORKERS = re.compile(
    r"annot|rater|worker|reader|reviewer|coder|judge|expert|crowd|human|model|user|doctor|nurse|"
    r"label+er|grader|person|radiologist|student|gpt|llm|turker|assessor|physician|voter|team|novice|layper",
    re.IGNORECASE,
)
_QUESTIONS = {"q", "question", "item", "task", "image", "page", "part"}  # numbered, no workers
_FULL = 0.8  # share of the pairs of worker and question that have a column
_INDEX = ("", "index", "idx", "unnamed: 0", "row")
_NUMBERED = re.compile(r"(.*?)[ _-]*\d+", re.DOTALL)
_MOSTLY = 0.5  # share of a column's labels that other workers use, unless its name is in a series
_ENOUGH_ROWS = 5  # with fewer rows, labels may all differ by chance
_TEXT = "large_string"
_EXACT = 2.0**53  # floats below this are exact integers
# Names that never mean a worker.
_OTHER_MEANINGS = {
    "id",
    *ALIASES["task"],
    *ALIASES["label"],
    *SECOND_CHOICE["label"],
    *map(plain_name, TRUTH_NAMES),
    *(alias for role in OPTIONAL_ROLES for alias in ALIASES[role]),
}
_GAPS = ("", "nan", "NaN", "<NA>")


def find_grid(names: Sequence[str]) -> dict[str, list[str]] | None:
    """Return the columns of each question, if names are those of workers times questions.

    Examples
    --------
    >>> find_grid(["R1_cat", "R1_size_mm", "R2_cat", "R2_size_mm"])
    {'cat': ['R1_cat', 'R2_cat'], 'size_mm': ['R1_size_mm', 'R2_size_mm']}
    >>> find_grid(["cat_R1", "dog_R1", "cat_R2", "dog_R2"])
    {'cat': ['cat_R1', 'cat_R2'], 'dog': ['dog_R1', 'dog_R2']}
    >>> find_grid(["expert_1", "expert_2", "crowd_1", "crowd_2"]) is None
    True
    """
    found = [candidate for split in _SPLITS for candidate in _grids(names, split)]
    # Numbered workers are better evidence than words in all combinations.
    best = max(found, key=lambda one: (-one[0], sum(map(len, one[1].values()))), default=None)
    return None if best is None else best[1]


def _grids(
    names: Sequence[str], split: re.Pattern[str]
) -> Iterator[tuple[float, dict[str, list[str]]]]:
    """Yield the share of columns that was needed, and the columns by question, of a split."""
    parts = {name: match.groups() for name in names if (match := split.fullmatch(name.strip()))}
    for worker, question in ((0, 1), (1, 0)):
        workers = {part[worker] for part in parts.values()}
        grid: dict[str, list[str]] = {}
        for name, part in parts.items():
            grid.setdefault(part[question], []).append(name)
        grid = {one: columns for one, columns in grid.items() if len(columns) > 1}
        full = sum(map(len, grid.values())) / max(len(workers) * len(grid), 1)
        least = _least(workers, list(grid))
        if min(len(workers), len(grid)) > 1 and full >= least:
            yield least, grid


def _least(workers: Collection[str], questions: Collection[str]) -> float:
    """Return the share of all columns that such names of workers and questions need."""
    words = {
        match[1].lower() if (match := _ENUMERATED.fullmatch(name)) else None for name in workers
    }
    if all(map(str.isdecimal, questions)) or words & _QUESTIONS:
        return 2.0  # never
    if words == {""} and any(map(_WORKERS.search, questions)):  # expert_1, novice_1
        return 2.0
    if (len(words) == 1 and None not in words) or all(map(_WORKERS.search, workers)):
        return _FULL
    return 1.0  # ann_effusion: two words, in all combinations


class WideColumns(NamedTuple):
    """The columns of a wide table.

    Attributes
    ----------
    task : str or None
        The column of the tasks; None if tasks are numbered.
    workers : tuple of str
    left_out : tuple of str
        Other columns.
    """

    task: str | None
    workers: tuple[str, ...]
    left_out: tuple[str, ...]

    def note(self, *, recognised: bool) -> str | None:
        """Return a sentence that lists the ignored columns and explains how to change a guess."""
        if not self.left_out:
            return None
        remedy = f" (name the workers' columns with {_worker_option(self.workers)})"
        shown = listed(self.left_out)
        return f"columns of the wide table that are not read: {shown}{remedy if recognised else ''}"


def choose_columns(
    columns: Mapping[str, Any],
    task: str | None = None,
    workers: Sequence[str] | None = None,
) -> WideColumns:
    """Classify columns as task, worker or other, by names and values.

    Parameters
    ----------
    columns : mapping of name to Arrow text
        Null where there is no label.
    task : str, optional
        The column of the tasks; detected if not given.
    workers : sequence of str, optional
        The columns of the workers; detected if not given.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = {"id": ["1", "2"], "text": ["Hi!", "Oh."], "ann": ["y", "n"], "bob": ["y", "y"]}
    >>> choose_columns({name: pa.array(values) for name, values in table.items()})
    WideColumns(task='id', workers=('ann', 'bob'), left_out=('text',))
    """
    names = list(columns)
    if workers is not None:
        chosen = require_workers(workers, names, task)
        rest = _without(names, chosen)
        task = _task_by_name(rest) if task is None else task
    else:
        task = _task_by_name(names) if task is None else task
        free = [name for name in names if name != task and not _has_other_meaning(name)]
        if task is None and _numbers_the_rows(free, names, columns):
            task = free.pop(0)
        chosen = _sharing(free, columns)
        refuse_grid(free, chosen)
        if len(chosen) < 2:
            raise DataError(
                f"No two columns share a label, so none looks like a worker (there are "
                f"{listed(names)}); name the workers with {_worker_option(free or names)}."
            )
        rest = _without(free, chosen)
    if task is None:
        first = next(iter(columns))  # tasks, if its values are all distinct
        task = first if first in rest and _is_distinct(columns[first]) else None
    left_out = _without(names, chosen if task is None else [task, *chosen])
    return WideColumns(task, tuple(chosen), tuple(left_out))


def numbered_workers(names: Sequence[str], task: str | None) -> list[str]:
    """Return the columns of the workers of a wide table of numbers, by their names alone.

    Numbers of workers cannot be told from other numbers by their values, so the names must form
    one series.

    Examples
    --------
    >>> numbered_workers(["id", "rater_1", "rater_2", "length"], None)
    ['rater_1', 'rater_2']
    """
    free = [name for name in names if name != task and not _has_other_meaning(name)]
    refuse_grid(free, free)
    series = _series(free)
    words = {match[1].lower() for name in series if (match := _NUMBERED.fullmatch(name))}
    if len(words) != 1:
        raise DataError(
            f"Which columns of a wide table of numbers are workers cannot be told (there are "
            f"{listed(names)}); name them with {_worker_option(free or names)}."
        )
    return [name for name in free if name in series]


def refuse_grid(names: Sequence[str], workers: Sequence[str]) -> None:
    """Refuse columns that hold several questions of each worker, taken for one worker each."""
    grid = find_grid(names) or {}
    among = {question: {*columns} & {*workers} for question, columns in grid.items()}
    asked = [question for question, columns in among.items() if columns]
    if len(asked) < 2 or 2 * sum(map(len, among.values())) < len(workers):
        return
    question, columns = asked[0], grid[asked[0]]
    raise DataError(
        f"The columns look like the answers of {len(columns)} workers to {len(grid)} questions "
        f"({listed(list(grid))}), and a run answers one question; name the columns of one, such as "
        f"{question!r}, with {_worker_option(columns, all_names=True)}, or all that are workers."
    )


def wide_hint(header: Sequence[str], columns: Mapping[str, Any]) -> str | None:
    """Return advice on reading a table that looks wide; None for other tables.

    Parameters
    ----------
    header : sequence of str
        All names.
    columns : mapping of name to Arrow text
        The first rows.
    """
    try:
        if guess("worker", header) is not None:
            return None
        workers = choose_columns(columns).workers
    except DataError:
        return None
    say = for_reader("wide=True (in read, aggregate or CrowdLabels.from_frame)", "--wide")
    return (
        f"it looks like a wide table, with a column of labels per worker ({listed(workers)}); say "
        f"so with {say}, or name these columns with {_worker_option(workers)}."
    )


def label_texts(values: Any) -> Any:
    """Return a column of labels as Arrow text, null where missing.

    Integers that missing values turned into floats (1.0) become integers again.

    Examples
    --------
    >>> label_texts([1.0, None, 2.0]).to_pylist(), label_texts(["a", "", "nan"]).to_pylist()
    (['1', None, '2'], ['a', None, None])
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    except (pa.ArrowException, OverflowError):  # numbers and text, or integers beyond 64 bits
        column = pa.array([None if value is None else str(value) for value in values])
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        exact = pc.less(pc.abs(column), _EXACT)
        whole = pc.all(pc.and_(exact, pc.equal(column, pc.round(column)))).as_py() is not False
        column = column.cast(pa.int64()) if whole else column
    text = column.cast(pa.large_string())
    gap = pc.is_in(text, pa.array(_GAPS, text.type))
    if pc.any(gap).as_py():
        text = pc.if_else(gap, pa.scalar(None, text.type), text)
    decimal = pc.all(pc.ends_with(text, ".0")).as_py()
    if decimal and pc.all(pc.match_substring_regex(text.drop_null(), r"^\d+\.0$")).as_py():
        return pc.replace_substring_regex(text, r"\.0$", "")
    return text


def check_worker_columns(workers: Any) -> list[str]:
    """Return the names of worker columns as a list, or raise an error."""
    if isinstance(workers, str | bytes) or not hasattr(workers, "__iter__"):
        raise ParameterError(f"worker_columns is {workers!r}; give a list of column names.")
    names = [str(name) for name in workers]
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    if count != 1:
        what = f"{name!r} twice" if names else "no column"
        raise ParameterError(
            f"{for_reader('worker_columns', '--worker-columns')} names {what}; name each worker's "
            "column once."
        )
    return names


def require_workers(workers: Sequence[str], names: Sequence[str], task: str | None) -> list[str]:
    """Return the named worker columns, or raise an error if one does not exist."""
    known = set(names)
    for name in workers:
        if name not in known:
            raise DataError(
                f"There is no column {name!r} for a worker{suggestion(name, names)}; there are "
                f"{listed(names)}."
            )
        if name == task:
            raise DataError(
                f"The column {name!r} is named for the task and for a worker; give each a column "
                "of its own."
            )
    return list(workers)


def _task_by_name(names: Sequence[str]) -> str | None:
    index = next((name for name in names[:1] if name.strip().lower() in _INDEX), None)
    return index if index is not None else guess("task", names)


def _numbers_the_rows(
    free: Sequence[str], names: Sequence[str], columns: Mapping[str, Any]
) -> bool:
    """Return whether the first column has task ids, even if some are also labels.

    Essay ids 1, 2, 3 ... and ratings from 1 to 5 share values. Ids differ in every row. In addition
    the column must be outside the series of workers, or have values that no worker uses.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(free) < 3 or free[0] != names[0]:
        return False
    first, others = columns[free[0]], [columns[name] for name in free[1:]]
    if not _is_distinct(first):
        return False
    series = _series(free)
    if free[0] not in series and series.issuperset(free[1:]):
        return len(first) >= _ENOUGH_ROWS or _counts_up(first)
    used = pa.concat_arrays([_values(other) for other in others])
    foreign = pc.invert(pc.is_in(_values(first), used))
    return (
        len(first) >= _ENOUGH_ROWS
        and bool(pc.any(foreign).as_py())
        and not any(map(_is_distinct, others))
    )


def _is_distinct(values: Any) -> bool:
    return not values.null_count and len(values.unique()) == len(values)


def _values(column: Any) -> Any:
    return column.drop_null().value_counts().field("values").cast(_TEXT)


def _counts_up(texts: Any) -> bool:
    """Return whether texts are 0, 1, 2 ... or 1, 2, 3 ... in this order."""
    found = texts.to_pylist()
    return found in ([str(k) for k in range(n, n + len(found))] for n in (0, 1))


def _has_other_meaning(name: str) -> bool:
    return plain_name(name) in _OTHER_MEANINGS


def _sharing(names: Sequence[str], columns: Mapping[str, Any]) -> list[str]:
    """Return the columns that share their values with other columns."""
    import pyarrow as pa
    import pyarrow.compute as pc

    counts = {name: columns[name].drop_null().value_counts() for name in names}
    series = _series(names)
    chosen = list(names)
    while len(chosen) > 1:
        distinct = [counts[name].field("values").cast(_TEXT) for name in chosen]
        holders = pa.concat_arrays(distinct).value_counts()
        shared = holders.field("values").filter(pc.greater(holders.field("counts"), 1))
        kept = []
        for name in chosen:
            values, number = counts[name].field("values").cast(_TEXT), counts[name].field("counts")
            common = pc.sum(number.filter(pc.is_in(values, shared))).as_py() or 0
            total = pc.sum(number).as_py() or 0
            if common and (name in series or common >= _MOSTLY * total):
                kept.append(name)
        if len(kept) == len(chosen):
            return chosen
        chosen = kept
    return []


def _series(names: Sequence[str]) -> set[str]:
    """Return the names that form a series, such as ann1, ann2."""
    words: dict[str, list[str]] = {}
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match:
            words.setdefault(match[1].lower(), []).append(name)
    return {name for group in words.values() if len(group) > 1 for name in group}


def _without(names: Sequence[str], others: Sequence[str]) -> list[str]:
    known = set(others)
    return [name for name in names if name not in known]


def _worker_option(workers: Sequence[str], *, all_names: bool = False) -> str:
    shown = list(workers if all_names else workers[:3])
    more = ", ..." if len(workers) > len(shown) else ""
    return for_reader(
        f"worker_columns=[{', '.join(map(repr, shown))}{more}]",
        f"--worker-columns {shlex.quote(','.join(shown) + more.replace(' ', ''))}",
    )
