"""Evidence that data are not what they are given as: of another kind, long, or no answers.

Labels that are not classes are refused unless classes are declared; messages name the other kind,
which is recognised by the columns of a table or by its labels. Arrays that look like long tables,
with one (task, worker, label) per row, are not taken for a matrix of tasks × workers. The columns
of such a matrix are labels of the same tasks: they share classes and agree more often than by
chance. The columns of a long table are ids of different things: they share few values, and pairs
of task and worker hardly ever repeat. Classes such as "unsure" or "n/a" look like abstentions by
their names; declared as abstentions, they count as no label, and as a class they can win.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Hashable
from itertools import combinations, pairwise
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import is_missing
from wisecrowd.core.duplicates import are_many, different_pairs, repeated_pairs
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import is_text_ids
from wisecrowd.core.messages.descriptions import Places, describe_ids
from wisecrowd.core.messages.option_spelling import for_reader, option
from wisecrowd.core.types import Codes, Floats, Longs
from wisecrowd.kinds import (
    BETWEEN,
    LABELS,
    ORDERED,
    SEQUENCES,
    kind_of_columns,
    several_labels,
    span_hint,
)

if TYPE_CHECKING:
    from wisecrowd.kinds.classes.container import CrowdLabels

SCALES = ((1, 5), (0, 4), (1, 7))  # ends of usual scales of grades
FEWEST_GRADES = 4  # of a scale that occur

# Crowds of classes whose workers are right in half of their labels stay clear of these limits.
FEW_CLASSES = 30  # with fewer, labels always count as classes
LEAST_LABELS, LEAST_TASKS = 50, 20  # on tasks with several labels; with fewer, all are accepted
CONFIRMED = 0.04  # share of the other labels of a task that agree with a label, mean over classes
CHANCE_CORRECTED = 0.2  # agreement of the labels of a task, 0 by chance and 1 if all agree
ONE_EACH = 300  # labels, where tasks have one each; with fewer, all labels are accepted
DISTINCT = 0.9  # classes per label, where tasks have one label each
ENOUGH = 200_000  # labels to look at; larger data sets are subsampled evenly by task
_NUMBERS = 0.9  # share of the labels that are numbers, if not all are
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
LEAST_ROWS = 4  # with fewer, nothing is refused
ENOUGH_ROWS = 5000  # rows to look at; larger arrays are subsampled at random
RARE = 5.0  # minimum negative log-probability of so few repeats, for independent values
DISTINCT_PAIRS = 0.9  # share of the rows whose (task, worker) differs from all previous rows
MANY = 10  # distinct values of the largest column, which has three times as many as the smallest
ABOVE_CHANCE = 0.1  # minimum agreement of two columns of a matrix beyond chance
_PAIRS = tuple(combinations(range(3), 2))


class Look(NamedTuple):
    """The kind that labels look like, the reason, and the first row that shows it."""

    kind: str
    reason: str
    row: int | None


def check_kind(type: str | None) -> None:
    """Refuse a declared kind that is not one of classes."""
    if type is not None and type not in (LABELS, ORDERED):
        raise ParameterError(
            f"type is {type!r}, and CrowdLabels hold classes: give {option('type', LABELS)} or "
            f"{option('type', ORDERED)}, or use the container of that type."
        )


def require_classes(
    task: Codes, label: Codes, classes: NDArray[np.generic], places: Places
) -> None:
    """Refuse labels that are not classes; the error names the likely kind and the remedy.

    Parameters
    ----------
    task, label : (n,) int32
        Codes, in the order of the rows; label -1 is an abstention.
    classes : (n_classes,)
        The vocabulary of the labels.
    places : Places
        The names of columns and rows.
    """
    look = look_of(task, label, classes, places.header)
    if look is None:
        return
    where = "" if look.row is None else f" in {places.rows(np.array([look.row]))}"
    raise DataError(
        f"The {places.column('label')} column holds {look.reason}{where}: they look like "
        f"{look.kind}; give {option('type', look.kind)}, or give "
        + for_reader(
            "type='labels' (to read, aggregate or CrowdLabels.from_...)", option("type", LABELS)
        )
        + " if every value is a class."
    )


def look_of(
    task: Codes, label: Codes, classes: NDArray[np.generic], header: Collection[str] = ()
) -> Look | None:
    """Return the kind that labels look like if it is not classes, else None."""
    numbers = as_numbers_or_nan(classes)
    fractional = _first_fraction(label, numbers)
    columns = kind_of_columns(header)
    if fractional is not None:
        shown = classes.tolist()[label[fractional]]
        reason = f"fractional numbers, first {shown!r}"
        return Look(columns[0] if columns else "numbers", reason, fractional)
    if (sets := _first_set(classes)) is not None:
        return Look("sets", f"lists of classes, such as {sets!r}", None)
    if len(classes) < FEW_CLASSES or not _nearly_all_differ(task, label, len(classes)):
        return None
    kind = "texts" if np.isnan(numbers).mean() > 1 - _NUMBERS else "numbers"
    n = int(np.count_nonzero(label >= 0))
    reason = f"{len(classes)} different values in {n} labels, which hardly ever agree"
    return Look(columns[0] if columns else kind, reason, None)


def as_numbers_or_nan(classes: NDArray[np.generic]) -> Floats:
    """(n_classes,) values of the classes, NaN where a class is not a number."""
    if classes.dtype.kind in "iuf":
        return classes.astype(np.float64)
    if not is_text_ids(classes):
        return np.full(len(classes), np.nan)
    texts = (str(value) for value in classes.tolist())
    return np.array([float(x) if _NUMBER.fullmatch(x) else np.nan for x in texts])


def _first_fraction(label: Codes, numbers: Floats) -> int | None:
    """Return the first row with a fractional number, if nearly all labels are numbers."""
    with np.errstate(invalid="ignore"):
        fraction = np.append(np.isfinite(numbers) & (numbers != np.floor(numbers)), False)
    if not fraction.any():
        return None
    known = label[label >= 0]
    if np.isnan(numbers[known]).mean() > 1 - _NUMBERS:
        return None
    given = fraction[label]
    return int(np.argmax(given)) if given.any() else None


def _first_set(classes: NDArray[np.generic]) -> str | None:
    """Return the first of several values that are sets of classes: JSON lists, or ``a|b``.

    Values with bars count as sets if most of their parts are also values of their own. The parts of
    a path in a tree of classes, such as ``animal|cat``, are not.
    """
    texts = [value for value in classes.tolist() if isinstance(value, str)]
    listed = [text for text in texts if text.startswith("[") and text.endswith("]")]
    if len(listed) > 1 and len(listed) == len(texts):
        return listed[0]
    joined = [text for text in texts if BETWEEN in text]
    if len(joined) < 2:
        return None
    alone = {text.strip() for text in texts}
    parts = {part.strip() for text in joined for part in text.split(BETWEEN)}
    return joined[0] if 2 * len(parts & alone) > len(parts) else None


def _nearly_all_differ(task: Codes, label: Codes, n_classes: int) -> bool:
    """Return whether labels of the same task hardly ever agree.

    Agreement must be low on average over labels and over classes. The average over labels alone
    would refuse classes at chance level. The average over classes alone would refuse crowds with
    few tasks and many classes chosen by mistake.
    """
    some = label >= 0
    step = -(-len(task) // ENOUGH)
    if step > 1:
        some &= task % step == 0
    task, label = task[some], label[some]
    pairs, count = np.unique(task.astype(np.int64) * n_classes + label, return_counts=True)
    per_task, of_class = np.bincount(task), pairs % n_classes
    in_task = per_task[pairs // n_classes]
    several = per_task[per_task > 1]
    if several.sum() < LEAST_LABELS or len(several) < LEAST_TASKS:
        n_seen = len(np.unique(of_class))
        return len(task) >= ONE_EACH and n_seen >= DISTINCT * len(task)
    others = np.bincount(of_class, count * (in_task - 1), n_classes)
    agreeing = np.bincount(of_class, count * (count - 1), n_classes)
    shared = others > 0
    if np.mean(agreeing[shared] / others[shared]) >= CONFIRMED:
        return False
    total, n = np.bincount(label).astype(np.float64), len(label)
    apart = np.sum(total**2) - n - agreeing.sum(), n * (n - 1) - others.sum()  # across tasks
    chance = float(apart[0] / max(apart[1], 1))
    agreement = float(agreeing.sum() / others.sum())
    return agreement - chance < CHANCE_CORRECTED * (1 - chance)


def refuse_long_table(data: Any) -> None:
    """Refuse an array or list of rows that looks like a long table; the error explains both forms.

    A wide table whose first column contains the task ids is refused as well.
    """
    rows = _some_rows(data)
    if rows is None or len(rows) < LEAST_ROWS or rows.shape[1] < 3:
        return
    if rows.shape[1] not in (3, 4) or not looks_long(rows):
        _refuse_ids(rows, data)
        return
    n_rows, n_columns = len(data), rows.shape[1]
    if isinstance(data, np.ndarray):
        arguments, name = ", ".join(f"a[:, {j}]" for j in range(3)), "a"
    else:
        arguments, name = "*zip(*rows)" if n_columns == 3 else "*list(zip(*rows))[:3]", "rows"
    raise DataError(
        f"The {n_rows} × {n_columns} array looks like a long table with one task, worker and label "
        f"per row, and is neither read as one nor as a matrix of {n_columns} workers unasked; give "
        f"CrowdLabels.from_arrays({arguments}) for task, worker, label, or "
        f"CrowdLabels.from_matrix({name}) for tasks × workers."
    )


def _refuse_ids(rows: NDArray[Any], data: Any) -> None:
    """Refuse a matrix whose first column differs in every row and shares few or no values."""
    codes = _shared_codes(rows)
    own, others = codes[:, 0], codes[:, 1:]
    n = len(own)
    n_classes = len(np.unique(others[others >= 0]))
    if n <= LEAST_ROWS or (own < 0).any() or len(np.unique(own)) < n or 2 * n_classes > n:
        return
    if np.isin(own, others).any() and not _counts_up(rows[:, 0]):
        return
    made = "" if isinstance(data, np.ndarray) else ", where a = np.array(rows, dtype=object)"
    raise DataError(
        f"The first column of the {len(data)} × {rows.shape[1]} array differs in every row, as ids "
        "of tasks do, and is not read as a worker unasked; give CrowdLabels.from_matrix(a[:, 1:], "
        f"tasks=a[:, 0]), or CrowdLabels.from_matrix(a) if it holds labels{made}."
    )


def _counts_up(column: NDArray[Any]) -> bool:
    """Return whether values are increasing whole numbers."""
    found = column.tolist()
    if not all(isinstance(x, int) or (isinstance(x, float) and x.is_integer()) for x in found):
        return False
    return all(a < b for a, b in pairwise(found))


def _some_rows(data: Any) -> NDArray[Any] | None:
    """Return (n, n_columns) rows, subsampled with a fixed seed; None if their lengths differ."""
    chosen = np.arange(len(data))
    if len(data) > ENOUGH_ROWS:  # not every m-th row: those may all have the same worker
        chosen = np.sort(np.random.default_rng(0).choice(len(data), ENOUGH_ROWS, replace=False))
    if isinstance(data, np.ndarray):
        return np.asanyarray(data[chosen])
    rows = (data[row] for row in chosen.tolist())
    some = [list(row) for row in rows if not isinstance(row, str) and hasattr(row, "__len__")]
    if len({len(row) for row in some}) != 1 or any(np.ndim(x) for row in some for x in row):
        return None
    array = np.empty((len(some), len(some[0])), dtype=object)
    array[:] = some
    return array


def looks_long(rows: NDArray[Any]) -> bool:
    """Return whether three columns of ``rows`` look like task, worker and label."""
    codes = _shared_codes(rows)
    if rows.shape[1] == 3:
        return _is_long(codes)
    # A fourth column, such as a time, must not share values with the others.
    return any(
        _shares_nothing(codes, j) and _is_long(np.delete(codes, j, axis=1))
        for j in range(rows.shape[1])
    )


def _shared_codes(rows: NDArray[Any]) -> Longs:
    """Return (n, n_columns) codes of the values, shared by all columns; -1 if missing."""
    known: dict[Any, int] = {}
    flat = [x if isinstance(x, Hashable) else repr(x) for x in rows.ravel().tolist()]
    codes = [
        -1 if is_missing(x) or x == "" else known.setdefault((isinstance(x, str), x), len(known))
        for x in flat
    ]
    return np.array(codes, dtype=np.int64).reshape(rows.shape)


def _shares_nothing(codes: Longs, j: int) -> bool:
    own = codes[:, j]
    return not np.isin(own[own >= 0], np.delete(codes, j, axis=1)).any()


class _Column(NamedTuple):
    n_values: int
    repetition: float  # probability that two rows have the same value


def _is_long(codes: Longs) -> bool:
    """Return whether three columns are task, worker and label, in any order."""
    codes = codes[(codes >= 0).all(axis=1)]
    n = len(codes)
    if n < LEAST_ROWS or any(_agree(codes[:, a], codes[:, b]) for a, b in _PAIRS):
        return False
    columns = [_column(codes[:, j]) for j in range(3)]
    if any(_missing_repeats(codes, columns, a, b) > RARE for a, b in _PAIRS):
        return True
    few, more, most = sorted(column.n_values for column in columns)
    # The pairs of values of (task, worker) hardly ever repeat.
    if all(len(np.unique(_paired(codes, a, b))) < DISTINCT_PAIRS * n for a, b in _PAIRS):
        return False
    if few == 1:  # a single worker: every task has one label
        return most >= max(MANY, DISTINCT_PAIRS * n) and 2 * more <= n
    unlike = all(_shares_nothing(codes, j) for j in range(3))
    return (unlike and 2 * few <= n) or (most >= MANY and most >= 3 * few)


def _column(codes: Longs) -> _Column:
    n, count = len(codes), np.unique(codes, return_counts=True)[1]
    return _Column(len(count), float(np.sum(count * (count - 1)) / (n * (n - 1))))


def _agree(a: Longs, b: Longs) -> bool:
    """Return whether two columns agree more often than by chance."""
    n, values = len(a), np.unique(np.concatenate([a, b]))
    share = [np.bincount(np.searchsorted(values, x), minlength=len(values)) / n for x in (a, b)]
    chance = float(share[0] @ share[1])
    error = max(np.sqrt(chance * (1 - chance) / n), 1 / n)
    return bool(np.mean(a == b) > chance + max(ABOVE_CHANCE, 3 * error))


def _missing_repeats(codes: Longs, columns: list[_Column], a: int, b: int) -> float:
    """Bound the negative log-probability of so few repeated pairs if columns were independent."""
    n = len(codes)
    expected = comb(n, 2) * columns[a].repetition * columns[b].repetition
    found = np.unique(_paired(codes, a, b), return_counts=True)[1]
    repeats = float(np.sum(found * (found - 1)) / 2)
    if repeats >= expected:
        return 0.0
    # Chernoff bound on a Poisson number of repeats.
    return expected - repeats + (repeats * np.log(repeats / expected) if repeats else 0.0)


def _paired(codes: Longs, a: int, b: int) -> Longs:
    """Return (n,) codes of the pairs of values of two columns."""
    paired: Longs = codes[:, a] * (codes.max() + 1) + codes[:, b]
    return paired


_APOSTROPHES = re.compile(r"['’`´]")
_BETWEEN = re.compile(r"[\W_]+")
_NAMES = re.compile(
    r"unsure|not sure|(?:im )?uncertain|undecided|idk|(?:i )?(?:dont|do not|not) know"
    r"|unknown|not known|n a|na|not applicable|none of (?:the|these|those|them)\b.*"
    r"|(?:i )?(?:cannot|can not|cant|could not|couldnt|unable to) (?:tell|say|decide|judge|see)"
    r"|skip|skipped|abstain|abstained|abstention|no answer|no opinion|no idea"
    r"|prefer not to (?:say|answer)|not enough (?:information|info|context)"
)


def is_abstention(name: Any) -> bool:
    """Return whether a class is called as an abstention would be.

    "Other" and "none" are answers more often than not; whether workers support them is another
    question.

    Examples
    --------
    >>> [is_abstention(name) for name in ("Unsure", "I don't know", "n/a", "none of the above")]
    [True, True, True, True]
    >>> [is_abstention(name) for name in ("other", "none", "Nathan", "unknown soldier", 3)]
    [False, False, False, False, False]
    """
    if not isinstance(name, str):
        return False
    words = _BETWEEN.sub(" ", _APOSTROPHES.sub("", name.lower())).strip()
    return _NAMES.fullmatch(words) is not None


def abstention_hint(names: Any) -> str:
    """Return the option that declares classes as abstentions, in the reader's syntax.

    Examples
    --------
    >>> abstention_hint(["not sure"])
    "abstain=['not sure']"
    """
    given = [str(name) for name in names]
    return for_reader(f"abstain={given}", " ".join(f"--abstain {shlex.quote(n)}" for n in given))


def abstention_sentence(names: Any) -> str:
    """Return what the names of classes look like."""
    one = len(names) == 1
    return (
        f"The class{'' if one else 'es'} {describe_ids(names)} {'looks' if one else 'look'} like "
        f"{'an abstention' if one else 'abstentions'}: workers who choose "
        f"{'it' if one else 'them'} may not know"
    )


def doubts_about(
    labels: CrowdLabels, header: Collection[str], *, declared: bool
) -> tuple[tuple[str, ...], str | None]:
    """Return sentences on why commands refuse labels, and the type that they need.

    The type is "" if they need none, and None if they refuse the labels of any type.
    """
    look = None if declared else look_of(labels.task, labels.label, labels.classes, header)
    if look is not None:
        sentence = (
            f"the labels look like {look.kind} ({look.reason}) and are refused without "
            f"{option('type', look.kind)} or {option('type', LABELS)}"
        )
        return (sentence,), look.kind
    spans = "" if declared else span_hint(header)
    same = repeated_pairs(labels.task, labels.worker)
    n_different, n_pairs = different_pairs(same, labels.label), len(labels.task) - int(same.sum())
    if are_many(n_different, n_pairs):
        found = several_labels(n_different, n_pairs, "", () if declared else header)
        return (str(found).rstrip("."),), SEQUENCES if spans else None
    if spans and same.any():
        return (spans,), ""
    scale = None if declared else _scale_of(labels)
    if scale is not None:
        return (f"the labels may be grades; if they are ordered, give {scale}",), ""
    return (), ""


def _scale_of(labels: CrowdLabels) -> str | None:
    """Return the option that declares a scale if the classes are whole numbers of a usual one."""
    values = as_numbers_or_nan(labels.classes)
    if len(values) < FEWEST_GRADES or np.isnan(values).any():
        return None
    ends = int(values.min()), int(values.max())
    if ends not in SCALES:
        return None
    grades = [str(grade) for grade in range(ends[0], ends[1] + 1)]
    return for_reader(
        f"{option('type', ORDERED)} and classes={grades}", f"--scale {ends[0]}..{ends[1]}"
    )
