"""Detection of arrays that are long tables, with one (task, worker, label) per row.

The columns of a tasks × workers matrix are labels of the same tasks: they share classes and agree
more often than by chance. The columns of a long table are ids of different things: they share few
values, and pairs of task and worker hardly ever repeat.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import combinations, pairwise
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import is_missing
from wisecrowd.core.exceptions import DataError

Codes = NDArray[np.int64]

LEAST_ROWS = 4  # with fewer, nothing is refused
ENOUGH_ROWS = 5000  # rows to look at; larger arrays are subsampled at random
RARE = 5.0  # minimum negative log-probability of so few repeats, for independent values
DISTINCT = 0.9  # share of the rows whose (task, worker) differs from all previous rows
MANY = 10  # distinct values of the largest column, which has three times as many as the smallest
ABOVE_CHANCE = 0.1  # minimum agreement of two columns of a matrix beyond chance

_PAIRS = tuple(combinations(range(3), 2))


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


def _shared_codes(rows: NDArray[Any]) -> Codes:
    """Return (n, n_columns) codes of the values, shared by all columns; -1 if missing."""
    known: dict[Any, int] = {}
    flat = [x if isinstance(x, Hashable) else repr(x) for x in rows.ravel().tolist()]
    codes = [
        -1 if is_missing(x) or x == "" else known.setdefault((isinstance(x, str), x), len(known))
        for x in flat
    ]
    return np.array(codes, dtype=np.int64).reshape(rows.shape)


def _shares_nothing(codes: Codes, j: int) -> bool:
    own = codes[:, j]
    return not np.isin(own[own >= 0], np.delete(codes, j, axis=1)).any()


class _Column(NamedTuple):
    n_values: int
    repetition: float  # probability that two rows have the same value


def _is_long(codes: Codes) -> bool:
    """Return whether three columns are task, worker and label, in any order."""
    codes = codes[(codes >= 0).all(axis=1)]
    n = len(codes)
    if n < LEAST_ROWS or any(_agree(codes[:, a], codes[:, b]) for a, b in _PAIRS):
        return False
    columns = [_column(codes[:, j]) for j in range(3)]
    if any(_missing_repeats(codes, columns, a, b) > RARE for a, b in _PAIRS):
        return True
    few, more, most = sorted(column.n_values for column in columns)
    if not _has_distinct_pairs(codes):
        return False
    if few == 1:  # a single worker: every task has one label
        return most >= max(MANY, DISTINCT * n) and 2 * more <= n
    unlike = all(_shares_nothing(codes, j) for j in range(3))
    return (unlike and 2 * few <= n) or (most >= MANY and most >= 3 * few)


def _column(codes: Codes) -> _Column:
    n, count = len(codes), np.unique(codes, return_counts=True)[1]
    return _Column(len(count), float(np.sum(count * (count - 1)) / (n * (n - 1))))


def _agree(a: Codes, b: Codes) -> bool:
    """Return whether two columns agree more often than by chance."""
    n, values = len(a), np.unique(np.concatenate([a, b]))
    share = [np.bincount(np.searchsorted(values, x), minlength=len(values)) / n for x in (a, b)]
    chance = float(share[0] @ share[1])
    error = max(np.sqrt(chance * (1 - chance) / n), 1 / n)
    return bool(np.mean(a == b) > chance + max(ABOVE_CHANCE, 3 * error))


def _missing_repeats(codes: Codes, columns: list[_Column], a: int, b: int) -> float:
    """Bound the negative log-probability of so few repeated pairs if columns were independent."""
    n = len(codes)
    expected = comb(n, 2) * columns[a].repetition * columns[b].repetition
    found = np.unique(_paired(codes, a, b), return_counts=True)[1]
    repeats = float(np.sum(found * (found - 1)) / 2)
    if repeats >= expected:
        return 0.0
    # Chernoff bound on a Poisson number of repeats.
    return expected - repeats + (repeats * np.log(repeats / expected) if repeats else 0.0)


def _has_distinct_pairs(codes: Codes) -> bool:
    """Return whether the pairs of values of two columns hardly ever repeat, like (task, worker)."""
    n = len(codes)
    return any(len(np.unique(_paired(codes, a, b))) >= DISTINCT * n for a, b in _PAIRS)


def _paired(codes: Codes, a: int, b: int) -> Codes:
    """Return (n,) codes of the pairs of values of two columns."""
    paired: Codes = codes[:, a] * (codes.max() + 1) + codes[:, b]
    return paired
