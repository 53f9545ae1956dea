r"""Metrics by group of tasks, and their differences between groups.

Names and definitions are those of fairlearn. With the positive class, or classes, :math:`P`:

=========================  ==============================================
selection_rate             :math:`p(\hat z \in P)`
base_rate                  :math:`p(z \in P)`
accuracy                   :math:`p(\hat z = z)`
true_positive_rate         :math:`p(\hat z \in P \mid z \in P)`
false_positive_rate        :math:`p(\hat z \in P \mid z \notin P)`
false_negative_rate        :math:`p(\hat z \notin P \mid z \in P)`
=========================  ==============================================

A difference is the largest minus the smallest value of a group. Its interval comes from tasks drawn
with replacement, for the two groups that differ most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from wisecrowd.core.attributes import Groups, as_groups
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.metric_inputs import FloatArray
from wisecrowd.core.parameter_checks import as_generator, check_integer

LEAST_TASKS = 30  # of a group that counts in a difference
N_REPLICATES = 400
# Name → the rates whose differences it is the larger of.
DIFFERENCES = {
    "demographic_parity_difference": ("selection_rate",),
    "equal_opportunity_difference": ("true_positive_rate",),
    "false_positive_rate_difference": ("false_positive_rate",),
    "equalized_odds_difference": ("true_positive_rate", "false_positive_rate"),
    "accuracy_difference": ("accuracy",),
    "base_rate_difference": ("base_rate",),
}
RATIOS = {
    "demographic_parity_ratio": ("selection_rate",),
    "equal_opportunity_ratio": ("true_positive_rate",),
    "equalized_odds_ratio": ("true_positive_rate", "false_positive_rate"),
}


@dataclass(frozen=True, eq=False)
class GroupMetrics:
    """Metrics of each group of tasks and their differences.

    Attributes
    ----------
    groups : tuple of str
    n_tasks : (n_groups,)
    rates : mapping of name to (n_groups,)
        NaN where a group has no task that the rate is about, such as no true positive.
    low, high : mapping of name to (n_groups,)
        Ends of the 95 % intervals.
    overall : mapping of name to float
    differences : mapping of name to (value, low, high)
    ratios : mapping of name to float
        Smallest over largest value of a group.
    notes : tuple of str
        What is left out, and why.
    """

    groups: tuple[str, ...]
    n_tasks: npt.NDArray[np.int64]
    rates: Mapping[str, FloatArray]
    low: Mapping[str, FloatArray]
    high: Mapping[str, FloatArray]
    overall: Mapping[str, float]
    differences: Mapping[str, tuple[float, float, float]]
    ratios: Mapping[str, float]
    notes: tuple[str, ...] = ()

    def table(self) -> dict[str, npt.NDArray[Any]]:
        """Return one row per group and one for all tasks."""
        found: dict[str, npt.NDArray[Any]] = {
            "group": np.array([*self.groups, "all"], dtype=object),
            "n_tasks": np.append(self.n_tasks, self.n_tasks.sum()),
        }
        for name, values in self.rates.items():
            found[name] = np.append(values, self.overall[name])
        return found


def by_group(
    truth: npt.ArrayLike | None,
    predicted: npt.ArrayLike,
    groups: Any,
    *,
    positive: Any = 1,
    min_group: int = LEAST_TASKS,
    n_replicates: int = N_REPLICATES,
    random_state: Any = 0,
) -> GroupMetrics:
    """Return the metrics of each group of tasks, with intervals and differences.

    Parameters
    ----------
    truth : (n_tasks,) array-like of classes, or None
        Without it there is the selection rate only.
    predicted : (n_tasks,) array-like of classes
    groups : (n_tasks,) array-like, or Groups
        Group of each task; None is missing.
    positive : class, or list of classes
    min_group : int
        Groups with fewer tasks are listed and do not count in the differences.
    n_replicates : int
        Crowds of tasks drawn for the intervals.
    random_state : int, Generator or None

    Examples
    --------
    >>> found = by_group([1, 1, 0, 0], [1, 0, 1, 0], list("aabb"), min_group=1)
    >>> found.rates["selection_rate"].tolist()
    [0.5, 0.5]
    >>> found.differences["demographic_parity_difference"][0]
    0.0
    """
    check_integer("min_group", min_group, 1)
    check_integer("n_replicates", n_replicates, 0)
    known = groups if isinstance(groups, Groups) else as_groups(list(groups), "groups")
    chosen = _positives(predicted, positive)
    true = None if truth is None else _positives(truth, positive)
    _require_known(positive, predicted, truth)
    if len(chosen) != len(known.code) or (true is not None and len(true) != len(chosen)):
        raise DataError(
            f"There are {len(chosen)} predictions, {len(known.code)} groups"
            + ("" if true is None else f" and {len(true)} true classes")
            + "; give one of each per task."
        )
    right = None if truth is None else np.asarray(truth) == np.asarray(predicted)
    parts = _parts(chosen, true, right)
    sums = _Sums(parts, known)
    plain = sums.rates(None)
    draws = _draws(sums, n_replicates, as_generator(random_state))
    counts = np.asarray(sums.n_tasks >= min_group)
    low, high = _ends(draws)
    notes = list(_notes(known, sums.n_tasks, counts, plain))
    return GroupMetrics(
        groups=known.names,
        n_tasks=sums.n_tasks,
        rates=plain,
        low=low,
        high=high,
        overall=sums.overall(),
        differences=_differences(plain, draws, counts),
        ratios=_ratios(plain, counts),
        notes=tuple(notes),
    )


def demographic_parity_difference(
    truth: npt.ArrayLike, predicted: npt.ArrayLike, groups: Any, *, positive: Any = 1
) -> float:
    """Return the largest difference of selection rates between two groups.

    Examples
    --------
    >>> demographic_parity_difference([1, 1, 0, 0], [1, 1, 1, 0], list("aabb"))
    0.5
    """
    return _difference("demographic_parity_difference", truth, predicted, groups, positive)


def equal_opportunity_difference(
    truth: npt.ArrayLike, predicted: npt.ArrayLike, groups: Any, *, positive: Any = 1
) -> float:
    """Return the largest difference of true positive rates between two groups."""
    return _difference("equal_opportunity_difference", truth, predicted, groups, positive)


def equalized_odds_difference(
    truth: npt.ArrayLike, predicted: npt.ArrayLike, groups: Any, *, positive: Any = 1
) -> float:
    """Return the larger of the differences of true and of false positive rates."""
    return _difference("equalized_odds_difference", truth, predicted, groups, positive)


def false_positive_rate_difference(
    truth: npt.ArrayLike, predicted: npt.ArrayLike, groups: Any, *, positive: Any = 1
) -> float:
    """Return the largest difference of false positive rates between two groups."""
    return _difference("false_positive_rate_difference", truth, predicted, groups, positive)


def calibration_by_group(
    truth: npt.ArrayLike, score: npt.ArrayLike, groups: Any, *, positive: Any = 1
) -> dict[str, float]:
    """Return by how much the mean probability of the positive class exceeds its frequency.

    Examples
    --------
    >>> found = calibration_by_group([1, 0, 1, 1], [0.5, 0.5, 0.75, 0.75], list("aabb"))
    >>> found
    {'a': 0.0, 'b': -0.25}
    """
    known = groups if isinstance(groups, Groups) else as_groups(list(groups), "groups")
    excess = np.asarray(score, dtype=np.float64) - _positives(truth, positive)
    return {
        name: float(excess[known.code == number].mean()) for number, name in enumerate(known.names)
    }


def _difference(name: str, truth: Any, predicted: Any, groups: Any, positive: Any) -> float:
    found = by_group(truth, predicted, groups, positive=positive, min_group=1, n_replicates=0)
    return found.differences[name][0]


# ------------------------------------------------------------------------------------ sums by group


def _positives(values: Any, positive: Any) -> npt.NDArray[np.bool_]:
    array = np.asarray(values)
    wanted = positive if isinstance(positive, list | tuple | set | np.ndarray) else [positive]
    return np.isin(array, np.asarray(list(wanted), dtype=array.dtype if len(array) else None))


def _require_known(positive: Any, predicted: Any, truth: Any) -> None:
    """Refuse a positive class that no task has: every rate would be 0."""
    wanted = positive if isinstance(positive, list | tuple | set | np.ndarray) else [positive]
    known = {
        *np.asarray(predicted).tolist(),
        *([] if truth is None else np.asarray(truth).tolist()),
    }
    if known and not known & set(wanted):
        listed = ", ".join(repr(one) for one in sorted(known, key=str)[:10])
        raise DataError(
            f"The positive class {positive!r} is not among the classes ({listed}); name one of "
            "them."
        )


def _parts(chosen: Any, true: Any, right: Any) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return numerator and denominator of each rate, per task."""
    one = np.ones(len(chosen))
    parts = {"selection_rate": (chosen, one)}
    if true is not None:
        parts |= {
            "base_rate": (true, one),
            "accuracy": (right, one),
            "true_positive_rate": (chosen & true, true),
            "false_positive_rate": (chosen & ~true, ~true),
            "false_negative_rate": (~chosen & true, true),
        }
    return {name: (a.astype(np.float64), b.astype(np.float64)) for name, (a, b) in parts.items()}


class _Sums:
    """Sums of numerators and denominators over the tasks of each group."""

    def __init__(self, parts: dict[str, tuple[FloatArray, FloatArray]], groups: Groups) -> None:
        kept = groups.code >= 0
        self._code, self._size = groups.code[kept], len(groups.names)
        self._parts = {name: (a[kept], b[kept]) for name, (a, b) in parts.items()}
        self.n_tasks = np.bincount(self._code, minlength=self._size)

    @property
    def n_kept(self) -> int:
        return len(self._code)

    def rates(self, weight: FloatArray | None) -> dict[str, FloatArray]:
        """Return each rate (n_groups,); NaN for 0 / 0."""
        return {
            name: _ratio(self._total(above, weight), self._total(below, weight))
            for name, (above, below) in self._parts.items()
        }

    def overall(self) -> dict[str, float]:
        return {
            name: float(_ratio(np.array([above.sum()]), np.array([below.sum()]))[0])
            for name, (above, below) in self._parts.items()
        }

    def _total(self, values: FloatArray, weight: FloatArray | None) -> FloatArray:
        weighted = values if weight is None else values * weight
        return np.bincount(self._code, weighted, self._size).astype(np.float64)


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), np.nan)


def _draws(sums: _Sums, n: int, rng: np.random.Generator) -> dict[str, FloatArray]:
    """Return each rate (n, n_groups) for tasks drawn with replacement."""
    found: dict[str, list[FloatArray]] = {}
    for _ in range(n):
        drawn = np.bincount(rng.integers(sums.n_kept, size=sums.n_kept), minlength=sums.n_kept)
        for name, values in sums.rates(drawn.astype(np.float64)).items():
            found.setdefault(name, []).append(values)
    return {name: np.array(values) for name, values in found.items()}


def _ends(draws: dict[str, FloatArray]) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    low, high = {}, {}
    for name, values in draws.items():
        low[name], high[name] = _quantiles(values)
    return low, high


def _quantiles(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the ends of 95 % intervals along the first axis; NaN where nothing was drawn."""
    known = np.isfinite(values).any(axis=0)
    filled = np.where(known, values, 0.0)
    low, high = np.nanquantile(filled, [0.025, 0.975], axis=0)
    return np.where(known, low, np.nan), np.where(known, high, np.nan)


def _spread(rates: Mapping[str, FloatArray], names: tuple[str, ...], counts: Any) -> FloatArray:
    """Return the largest minus the smallest value, the largest such difference of the rates."""
    spreads = []
    for name in names:
        values = rates[name][..., counts]
        known = np.isfinite(values)
        top = np.where(known, values, -np.inf).max(axis=-1, initial=-np.inf)
        bottom = np.where(known, values, np.inf).min(axis=-1, initial=np.inf)
        spreads.append(np.where(known.sum(axis=-1) > 1, top - bottom, np.nan))
    return np.asarray(np.max(spreads, axis=0))


def _differences(
    plain: Mapping[str, FloatArray], draws: Mapping[str, FloatArray], counts: Any
) -> dict[str, tuple[float, float, float]]:
    """Return the differences and their intervals.

    An interval is that of the two groups that differ most, which stay the same in all draws, so
    that it reaches below zero where the difference may be chance.
    """
    found = {}
    for name, rates in DIFFERENCES.items():
        if not all(rate in plain for rate in rates):
            continue
        spread = {rate: float(_spread(plain, (rate,), counts)) for rate in rates}
        widest = max(rates, key=lambda rate: -np.inf if np.isnan(spread[rate]) else spread[rate])
        low = high = np.nan
        if draws and not np.isnan(spread[widest]):
            usable = np.flatnonzero(counts & np.isfinite(plain[widest]))
            top = usable[plain[widest][usable].argmax()]
            bottom = usable[plain[widest][usable].argmin()]
            gap = draws[widest][:, top] - draws[widest][:, bottom]
            low, high = (float(end[0]) for end in _quantiles(gap[:, None]))
        found[name] = (spread[widest], low, high)
    return found


def _ratios(plain: Mapping[str, FloatArray], counts: Any) -> dict[str, float]:
    found = {}
    for name, rates in RATIOS.items():
        if all(rate in plain for rate in rates):
            values = [plain[rate][counts] for rate in rates]
            each = [np.nanmin(v) / np.nanmax(v) for v in values if np.nansum(v) > 0]
            found[name] = float(min(each)) if each else float("nan")
    return found


def _notes(groups: Groups, n_tasks: Any, counts: Any, plain: Mapping[str, FloatArray]) -> Any:
    if groups.n_missing:
        yield groups.note("group")
    small = [name for name, enough in zip(groups.names, counts, strict=True) if not enough]
    if small:
        yield f"Groups with few tasks do not count in the differences: {', '.join(small)}."
    for name in ("true_positive_rate", "false_positive_rate"):
        if name in plain and np.isnan(plain[name]).any():
            without = [groups.names[i] for i in np.flatnonzero(np.isnan(plain[name]))]
            what = "true" if name == "true_positive_rate" else "false"
            kind = "positive" if what == "true" else "negative"
            yield f"No {kind} task in {', '.join(without)}: no {what} positive rate there."
