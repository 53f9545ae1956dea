"""Leniency of judges, classes that they favour, and the side that they choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.judged_answers import Sides
from wisecrowd.core.types import Floats, Longs
from wisecrowd.truth.intervals import wilson_interval
from wisecrowd.truth.paired import holm, mcnemar, mean_interval

Columns = dict[str, NDArray[Any]]


class Leniency(NamedTuple):
    """Mean of judge minus people, its 95% interval, and the p-value that it is 0."""

    value: float
    low: float
    high: float
    p: float


def leniency(judged: Floats, reference: Floats, cluster: Longs | None = None) -> Leniency:
    """Return how much higher a judge grades than people, with a t-interval.

    Parameters
    ----------
    judged, reference : (n_questions,)
        Grades of the judge, and mean grades of people; NaN where there are none.
    cluster : (n_questions,), optional

    Examples
    --------
    >>> found = leniency(np.array([2.0, 3.0, 4.0, 1.0]), np.array([1.0, 2.5, 2.0, np.nan]))
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (1.167, -0.731, 3.064)
    """
    rows = np.flatnonzero(~np.isnan(judged) & ~np.isnan(reference))
    off = judged[rows] - reference[rows]
    return Leniency(*mean_interval(off, None if cluster is None else cluster[rows]))


def class_shares(
    judged: Floats, truth: Floats, classes: NDArray[Any], cluster: Longs | None = None
) -> Columns:
    """Return how often a judge gives each class, and how often it is the true one.

    Parameters
    ----------
    judged, truth : (n_questions,)
        Codes of classes, NaN where unknown.
    classes : (n_classes,) ids
    cluster : (n_questions,), optional
        Questions of one cluster depend on each other, and p-values are then those of t-tests.

    Returns
    -------
    dict
        ``class``, ``given`` and ``true``, both shares, their ``difference``, and ``p`` of
        McNemar's test, mid-p, adjusted by Holm over the classes.

    Examples
    --------
    >>> codes = np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0])
    >>> found = class_shares(*codes, np.array(["no", "yes"], dtype=object))
    >>> found["given"].round(2).tolist(), found["difference"].round(2).tolist()
    ([0.67, 0.33], [0.33, -0.33])
    """
    rows = np.flatnonzero(~np.isnan(judged) & ~np.isnan(truth))
    said, true = judged[rows].astype(np.int64), truth[rows].astype(np.int64)
    K, n = len(classes), max(len(rows), 1)
    given, correct = (np.bincount(x, minlength=K + 1)[:K] for x in (said, true))
    if cluster is None:
        both = np.bincount(said[said == true], minlength=K + 1)[:K]
        p = mcnemar(given - both, correct - both)
    else:
        some = cluster[rows]
        p = np.array([
            mean_interval((said == k).astype(np.float64) - (true == k), some)[3] for k in range(K)
        ])  # fmt: skip
    used = np.flatnonzero((given + correct > 0) & ~np.isnan(p))
    adjusted = np.full(K, np.nan)
    adjusted[used] = holm(p[used])
    columns = {
        "class": classes, "given": given / n, "true": correct / n,
        "difference": (given - correct) / n, "p": adjusted,
    }  # fmt: skip
    return {name: values[given + correct > 0] for name, values in columns.items()}


def side_rows(sides: Sides, judges: Sequence[int]) -> Columns:
    """Return for each judge how consistent it is when sides are exchanged, and which side it takes.

    Returns
    -------
    dict
        ``judge`` (code), ``n`` questions in both orders, ``consistent`` share, ``flips``, share of
        flips to the ``first`` side with Wilson's interval ``low`` to ``high``, and mid-p value.

    Examples
    --------
    >>> yes, no = np.full(4, True), np.full(4, False)
    >>> found = side_rows(Sides(np.zeros(4, int), np.arange(4), no, yes, yes), [0])
    >>> found["flips"].tolist(), found["first"].tolist(), found["p"].tolist()
    ([4], [1.0], [0.0625])
    """
    rows: dict[str, list[Any]] = {
        name: [] for name in ("judge", "n", "consistent", "flips", "first", "low", "high", "p")
    }
    for judge in judges:
        own = sides.worker == judge
        n, flips = int(own.sum()), int((own & sides.flip).sum())
        if not n:
            continue
        first = int((own & sides.first).sum())
        share = first / flips if flips else np.nan
        low, high = np.nan, np.nan
        if flips:
            ends = wilson_interval(np.array([share]), np.array([float(flips)]), 1.959963984540054)
            low, high = (float(end[0]) for end in ends)
        p = float(mcnemar(np.array([first]), np.array([flips - first]))[0]) if flips else np.nan
        values = (judge, n, float(sides.consistent[own].mean()), flips, share, low, high, p)
        for column, value in zip(rows.values(), values, strict=True):
            column.append(value)
    return {name: np.array(column) for name, column in rows.items()}
