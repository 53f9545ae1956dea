"""Estimates of what people would say of all tasks, from the few that they have judged.

The formulas are in :mod:`wisecrowd.truth.corrected_means`; here are input, groups and the table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.arrow import as_frame, frame_library
from wisecrowd.core.attributes import Groups, as_groups
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.kinds import all_kinds, kind_of
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import check_choice, check_number
from wisecrowd.core.targets import Targets
from wisecrowd.core.types import Floats, Longs, Mask
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.truth.blind_fits import fit_without_gold
from wisecrowd.truth.corrected_means import (
    CorrectedMeans,
    KnownSample,
    corrected_means,
    slope_of,
)
from wisecrowd.truth.known_answers import (
    FEWEST,
    Drawn,
    drawn_tasks,
    given_answers,
    refuse_source,
    require_enough,
)
from wisecrowd.truth.task_values import cluster_codes, values_of_tasks

ALL = "all"  # the group of all tasks
ITEM = "item"  # the groups of pairs
PILED = 0.5  # share of known numbers that are equal
FEWEST_PILED, FEW_PILED = 30, 50  # known answers, if so many are equal


@dataclass(frozen=True, eq=False)
class Estimate:
    """What people would say of all tasks.

    Attributes
    ----------
    columns : mapping of name to (n_rows,) array, one row per group and quantity
        ``group``; ``quantity``; ``value`` with its interval ``low`` to ``high``; ``gold_only``,
        ``gold_low`` and ``gold_high``, the same from the known answers alone; ``uncorrected``, what
        the labels say; ``n``, the known answers; ``n_eff``, the number of known answers that would
        say as much without the labels; ``lambda``, how far the predictions count, 0 to 1.
    n, n_tasks : int
        Known answers, and all tasks.
    slope : float
        The lambda of all rows.
    level : float
        Of the intervals.
    notes : tuple of str
        What the intervals assume, and what was left out.
    """

    columns: dict[str, NDArray[Any]]
    n: int
    n_tasks: int
    slope: float
    level: float
    notes: tuple[str, ...] = ()
    _library: str | None = None

    def __repr__(self) -> str:
        rows = len(self.columns["value"])
        return f"Estimate of {rows} quantities, by {self.n} known answers of {self.n_tasks} tasks"

    def table(self, library: str | None = None) -> Any:
        """Return the columns as a frame; ``library`` is described in ``worker_table``."""
        return as_frame(self.columns, frame_library(library, self._library))


def estimate(
    labels: Any,
    known: Any,
    *,
    fit: Any = None,
    of: str | None = None,
    by: Any = None,
    cluster: Any = None,
    level: float = 0.95,
) -> Estimate:
    r"""Estimate means of what people would say, from known answers and a fit without them.

    The labels of all tasks make the interval narrower, and the known answers remove the bias of the
    labels (prediction-powered inference, PPI++). Over published crowds with 100 known answers the
    interval of a class share is about 30% narrower than that of the known answers alone.

    Parameters
    ----------
    labels : annotations, or data of any form that is accepted for classes
        Classes, ordered classes, numbers or pairs.
    known : mapping from task to answer, (task, label) frame, or (n_tasks,) array with None
        Answers of a person to tasks drawn at random. A frame may have the columns ``stratum`` and
        ``weight`` of a check list.
    fit : fitted method, optional
        A fit of these labels that has not seen the known answers; by default one of the default
        method. Pairs need none: their prediction is the mean vote.
    of : {"shares", "mean", "win-rate"}, optional
        What to estimate: the shares of classes (default), the mean of numbers, or of classes that
        are numbers, or the win rate of the left item of pairs.
    by : str, mapping from task to group, or (n_tasks,) array, optional
        Groups of tasks, by default all tasks: a task attribute, or a column of the frame
        ``labels``. Of pairs also "item", for the win rate of every item.
    cluster : str, mapping from task to cluster, or (n_tasks,) array, optional
        Tasks that may err together, such as the questions about one text.
    level : float
        Of the intervals.

    References
    ----------
    A. N. Angelopoulos, J. C. Duchi, T. Zrnic (2023). PPI++: Efficient prediction-powered inference.
    arXiv 2311.01453.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(
    ...     1000, 9 * simulate.OneCoinWorkers(8, 2), simulate.PerTask(3), classes=["no", "yes"])
    >>> found = estimate(crowd.labels, dict(enumerate(crowd.truth[:100].tolist())))
    >>> found
    Estimate of 2 quantities, by 100 known answers of 1000 tasks
    >>> found.columns["quantity"].tolist(), round(float(found.columns["value"].sum()), 6)
    (['no', 'yes'], 1.0)
    """
    check_number(for_reader("level", "--level"), level, 0.5, 0.9999)
    data = labels if isinstance(labels, Annotations) else as_crowd_labels(labels)
    frame = None if data is labels else labels
    wanted = read_targets(data, given_answers(known, data), fit, of)
    refuse_source(data, wanted)
    rows, groups = _rows(wanted, by, data, frame)
    task = wanted.task[rows]
    kept = (data.labels_per_task[task] > 0) & (groups.code >= 0)
    rows, task, code = rows[kept], task[kept], groups.code[kept].astype(np.int64)
    is_known = ~np.isnan(wanted.answer[rows, 0])
    answered = np.zeros(data.n_tasks, dtype=bool)
    answered[task[is_known]] = True
    n, n_tasks = int(answered.sum()), len(np.unique(task))
    require_enough(n)
    design, notes = drawn_tasks(known, data, answered, n_tasks)
    sample = _sample(wanted, rows[is_known], code[is_known], design, len(groups.names))
    if cluster is not None:
        values = cluster_codes(values_of_tasks(cluster, data, frame, "cluster"))
        sample = replace(sample, cluster=values[task[is_known]])
    if not design.stratified and len(rows) == n_tasks:
        sample = _strata_by_group(sample, code)
    found = _estimates(sample, wanted.prediction[rows], code, wanted.share, level)
    notes += [*_slope_notes(found, n, n_tasks), *_few(found, groups.names)]
    notes += [] if wanted.share or n == n_tasks else _piled(sample.y[:, 0])
    if groups is not wanted.groups and groups.n_missing:
        notes.append(groups.note("group"))
    table = _table(found, groups.names, wanted.quantities)
    return Estimate(table, n, n_tasks, found.slope, level, tuple(notes), data.frame_library)


# ------------------------------------------------------------------------------------------- input


def targets_of(data: Annotations) -> Any:
    """Return the part of a kind that says what can be estimated of it."""
    kind = kind_of(data)
    part: Any = kind.part("targets")
    if part is None:
        good = [name for name, one in all_kinds().items() if one.has_part("targets")]
        scores = for_reader("score", "wisecrowd evaluate scores")
        raise DataError(
            f"Estimates are for {', '.join(good)}, and the data are {kind.name}; {scores} their "
            "results instead."
        )
    return part


def read_targets(data: Annotations, answers: dict[Any, Any], fit: Any, of: str | None) -> Targets:
    """Return known answers and predictions; the fit has not seen the known answers."""
    part = targets_of(data)
    wanted = part.OF[0] if of is None else of
    check_choice(for_reader("of", "--of"), wanted, part.OF)
    require_enough(len(answers))
    found: Targets = part.targets(data, answers, lambda: fit_without_gold(data, fit), wanted)
    return found


def _rows(
    wanted: Targets, by: Any, data: Annotations, frame: Any
) -> tuple[NDArray[np.integer[Any]], Groups]:
    """Return the rows to take, one per task unless groups are those of the kind, and groups."""
    if isinstance(by, str) and by == ITEM and wanted.groups is not None:
        return np.arange(len(wanted.task)), wanted.groups
    rows = np.unique(wanted.task, return_index=True)[1]
    if by is None:
        return rows, Groups(np.zeros(len(rows), dtype=np.int32), (ALL,))
    named = isinstance(by, str)
    groups = as_groups(values_of_tasks(by, data, frame, "by"), by if named else "by")
    return rows, replace(groups, code=groups.code[wanted.task[rows]])


def _sample(
    wanted: Targets, rows: NDArray[np.integer[Any]], code: Longs, design: Drawn, n_groups: int
) -> KnownSample:
    """Return the rows with a known answer."""
    f = wanted.prediction[rows]
    f = np.asarray(f.toarray() if hasattr(f, "toarray") else f, dtype=np.float64)
    return KnownSample(
        wanted.answer[rows], f, design.stratum[wanted.task[rows]], code, design.drawn, design.sizes,
        n_groups,
    )  # fmt: skip


def _strata_by_group(sample: KnownSample, code: Longs) -> KnownSample:
    """Return a sample without declared strata with its groups as strata, whose sizes are known."""
    sizes = np.bincount(code, minlength=sample.n_groups).astype(np.int64)
    drawn = np.bincount(sample.group, minlength=sample.n_groups).astype(np.int64)
    return replace(sample, stratum=sample.group, drawn=drawn, sizes=sizes)


# -------------------------------------------------------------------------------------- estimates


class _Found(NamedTuple):
    """Means with and without predictions (n_groups, M), and what they come from."""

    corrected: CorrectedMeans
    alone: CorrectedMeans
    uncorrected: Floats
    n: Longs
    enough: Mask
    slope: float
    varies: bool


def _estimates(
    sample: KnownSample, prediction: Any, code: Longs, share: bool, level: float
) -> _Found:
    """Return the estimates of all groups; those with few known answers get none."""
    G = sample.n_groups
    count = np.bincount(sample.group, minlength=G)
    enough = count >= FEWEST
    if not enough.any():
        raise DataError(
            f"No group has {FEWEST} known answers, and the largest has {int(count.max())}; let a "
            f"person answer more tasks, or leave out {for_reader('by', '--by')}."
        )
    n_tasks = np.bincount(code, minlength=G).astype(np.float64)
    mean_f, variance_f = _group_moments(prediction, code, n_tasks)
    kept = enough[sample.group]
    place = np.cumsum(enough) - 1
    some = replace(
        sample, y=sample.y[kept], f=sample.f[kept], stratum=sample.stratum[kept],
        group=place[sample.group[kept]].astype(np.int64), n_groups=int(enough.sum()),
        cluster=None if sample.cluster is None else sample.cluster[kept],
    )  # fmt: skip
    if some.cluster is not None and np.bincount(some.clusters[1]).min() < FEWEST:
        raise DataError(
            f"The known answers are of fewer than {FEWEST} clusters; let a person answer tasks of "
            "more clusters."
        )
    alone = np.array_equal(some.stratum, sample.group[kept])  # one stratum per group
    slope = slope_of(some, variance_f[enough] if alone else None)
    corrected, only = (
        CorrectedMeans(*(_spread(one, enough) for one in corrected_means(
            some, mean_f[enough], n_tasks[enough], value, share=share, level=level
        )))
        for value in (slope, 0.0)
    )  # fmt: skip
    varies = bool((some.f.max(axis=0) > some.f.min(axis=0)).any())
    return _Found(corrected, only, mean_f, count, enough, slope, varies)


def _group_moments(prediction: Any, code: Longs, n: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance of the predictions of each group (n_groups, M)."""
    from scipy.sparse import csr_array

    shape = len(n), len(code)
    one = csr_array((1 / n[code], (code, np.arange(len(code)))), shape=shape)
    first, second = (
        np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64)
        for part in (one @ prediction, one @ (prediction * prediction))
    )
    factor = n / np.maximum(n - 1, 1)
    return first, np.maximum(second - first**2, 0.0) * factor[:, None]


def _spread(values: Floats, enough: Mask) -> Floats:
    """Return values of some groups as those of all, NaN for the others."""
    found = np.full((len(enough), values.shape[1]), np.nan)
    found[enough] = values
    return found


def _table(
    found: _Found, names: tuple[str, ...], quantities: tuple[str, ...]
) -> dict[str, NDArray[Any]]:
    """Return one row per group and quantity."""
    G, M = found.uncorrected.shape
    group, quantity = (np.empty(G * M, dtype=object) for _ in range(2))
    group[:] = np.repeat(np.array(names, dtype=object), M)
    quantity[:] = np.tile(np.array(quantities, dtype=object), G)
    corrected, alone = found.corrected, found.alone
    numbers = {
        "value": corrected.value, "low": corrected.low, "high": corrected.high,
        "gold_only": alone.value, "gold_low": alone.low, "gold_high": alone.high,
        "uncorrected": found.uncorrected,
    }  # fmt: skip
    table: dict[str, NDArray[Any]] = {"group": group, "quantity": quantity}
    table |= {name: values.ravel() for name, values in numbers.items()}
    table["n"] = np.repeat(found.n, M).astype(np.int64)
    table["n_eff"] = corrected.n_eff.ravel()
    table["lambda"] = np.where(np.repeat(found.enough, M), found.slope, np.nan)
    return table


# ------------------------------------------------------------------------------------------ notes


def _slope_notes(found: _Found, n: int, n_tasks: int) -> list[str]:
    if n >= n_tasks:
        return ["All tasks have a known answer, so that the values are exact."]
    if not found.varies:
        return ["The predictions do not vary, so that only the known answers count."]
    if found.slope <= 0:
        return [
            "The predictions do not follow the known answers, so that only these count (lambda 0)."
        ]
    return []


def _few(found: _Found, names: tuple[str, ...]) -> list[str]:
    few = [name for name, good in zip(names, found.enough, strict=True) if not good]
    if not few:
        return []
    shown = ", ".join(few[:3]) + (", ..." if len(few) > 3 else "")
    return [
        f"{len(few)} of {len(names)} groups ({shown}) have fewer than {FEWEST} known answers and "
        "get no estimate."
    ]


def _piled(y: Floats) -> list[str]:
    """Refuse few known numbers half of which are equal, or warn of them."""
    share = float(np.unique(y, return_counts=True)[1].max()) / len(y)
    if share < PILED or len(y) >= FEW_PILED:
        return []
    what = f"{share:.0%} of {len(y)} known numbers are equal"
    if len(y) < FEWEST_PILED:
        raise DataError(
            f"{what}, and an interval of such numbers needs {FEWEST_PILED}; let a person answer "
            "more tasks."
        )
    return [f"{what}; below {FEW_PILED} known answers the interval of such numbers is too narrow."]
