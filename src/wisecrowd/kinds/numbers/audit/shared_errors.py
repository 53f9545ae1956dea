r"""Shared errors: groups of workers whose numbers are closer to each other than chance explains.

The truth cancels in the difference of two workers. If their errors are independent,
:math:`D_{jl} = \overline{(y_{ij} - y_{il})^2}` over their common tasks estimates
:math:`\sigma_j^2 + \sigma_l^2`, with biases and gains removed. Workers who share an
error are closer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.answer_pruning import effect_of_removal
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.core.part import NotApplicable, Part
from wisecrowd.core.registry import get_method
from wisecrowd.core.statistics import benjamini_hochberg
from wisecrowd.core.types import Floats, Longs, Mask
from wisecrowd.kinds.numbers.audit.view import MAD, NumberView, number_view
from wisecrowd.kinds.numbers.container import CrowdNumbers

MOST_PAIRS = 3_000_000  # pairs of labels of the same task; above, tasks are sampled
CLOSE = 0.7  # of the expected squared difference; errors with a correlation of .3
OUTLIER = 25.0  # times the typical squared difference; larger ones are clipped
ROUNDS = 40
COARSE = 0.25  # share of equal pairs of labels, from which differences are not normal
N_LEVELS = 6  # quantiles of the tasks' medians
HABIT_PRIOR = 2.0  # labels by which a worker's mean at a level is shrunk
LARGE_SHARE = 0.25  # of the labels: a group of this size can outvote the others


@dataclass(frozen=True, eq=False)
class SharedErrorReport(Part):
    """Result of the search for shared errors.

    Attributes
    ----------
    first, second : (n_pairs,) worker ids
        Tested pairs, the closest ones first.
    n_shared : (n_pairs,)
        Number of common tasks.
    closeness : (n_pairs,)
        Observed over expected squared difference: 1 for independent workers, 0 for copies.
    q : (n_pairs,)
        False discovery rate.
    dependent : (n_pairs,) bool
    groups : list of lists of worker ids
        Workers connected by dependent pairs, largest group first.
    group_of : (n_workers,)
        Number of the worker's group, -1 for none.
    """

    table = "shared_errors"
    column_names = ("first", "second", "n_shared", "closeness", "q", "dependent")

    first: NDArray[Any]
    second: NDArray[Any]
    n_shared: Longs
    closeness: Floats
    q: Floats
    dependent: Mask
    groups: list[list[Any]]
    group_of: Longs
    _share: tuple[float, ...] = ()
    _remedy: str = ""
    _coarse: bool = False

    def findings(self) -> list[Finding]:
        """Return one finding per group."""
        return [
            self._finding(group, share)
            for group, share in zip(self.groups, self._share, strict=True)
        ]

    def _finding(self, group: list[Any], share: float) -> Finding:
        ids = np.empty(len(group), dtype=object)
        ids[:] = group
        members = {str(one) for one in group}
        inside = self.dependent & np.array([str(one) in members for one in self.first], dtype=bool)
        close = float(np.median(self.closeness[inside])) if inside.any() else 0.0
        severity = "high" if share >= LARGE_SHARE else "medium" if share >= 0.02 else "low"
        doubt = ""
        if self._coarse:
            severity, doubt = "low", " Many labels are equal, so the test is approximate."
        return Finding(
            "shared-errors", severity, 1.0 - close, tuple(group),
            f"{len(group)} workers ({describe_ids(ids)}; {share:.0%} of all labels) share errors: "
            f"their squared differences are {close:.0%} of what independent workers would have; "
            f"the score is one less this share.{doubt}",
            f"Count them as fewer opinions than workers: methods that weight workers by agreement, "
            f"such as gaussian-em, may trust them too much. {self._remedy}",
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of workers: ids, common tasks, mean squared differences; share of equal labels."""

    first: Longs
    second: Longs
    n: Longs
    squared: Floats
    kurtosis: float
    equal: float


def find_shared_errors(
    data: CrowdNumbers,
    *,
    min_shared: int = 10,
    level: float = 0.01,
    view: NumberView | None = None,
    pruning: bool = True,
) -> SharedErrorReport:
    r"""Find groups of workers who share errors, such as copies or models of one family.

    :math:`D_{jl}` is compared with :math:`a_j + a_l`, fitted to all pairs by medians, which a
    minority of dependent pairs does not move. Under independence
    :math:`\nu D_{jl}/(a_j + a_l)` has a chi-square distribution, with degrees of freedom
    :math:`\nu` lowered by the observed kurtosis of the differences. A pair is dependent if the
    false discovery rate is at most ``level`` and the ratio is below .7.

    Parameters
    ----------
    data : CrowdNumbers
    min_shared : int
        Common tasks of a pair that is tested.
    level : float
        False discovery rate.
    view : NumberView, optional
        View of the same data; by default it is computed.
    pruning : bool
        Whether to measure remedies on held-out labels of the workers outside of the groups.

    Notes
    -----
    The mean of each worker at six levels of tasks is removed first, and with it bias and gain:
    workers with the same habits, such as a compressed scale or a threshold below which they answer
    zero, do not share errors. If a quarter of all pairs of labels are equal, as in percentages that
    are mostly zero, the test is approximate and the severity is low.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> task, worker = np.divmod(np.arange(2400), 12)
    >>> shared = rng.normal(0, 1.5, 200)[task] * (worker < 4)
    >>> value = rng.normal(0, 2, 200)[task] + shared + rng.normal(0, 0.7, 2400)
    >>> find_shared_errors(CrowdNumbers.from_arrays(task, worker, value)).groups
    [[0, 1, 2, 3]]
    """
    from scipy.special import gammainc

    check_integer("min_shared", min_shared, 3)
    check_number("level", level, 0.0, 1.0)
    view = number_view(data) if view is None else view
    pairs = _pairs_of_workers(view, min_shared)
    if len(pairs.n) < 3:
        raise NotApplicable(
            f"Shared errors cannot be looked for: fewer than three pairs of workers share "
            f"{min_shared} tasks."
        )
    noise = _additive_fit(pairs, data.n_workers)
    expected = np.maximum(noise[pairs.first] + noise[pairs.second], 1e-300)
    ratio = pairs.squared / expected
    df = np.maximum((pairs.n - 1) * 2 / pairs.kurtosis, 1.0)
    q = benjamini_hochberg(_relative(gammainc(df / 2, df * ratio / 2)))
    dependent = (q <= level) & (ratio < CLOSE)
    group_of = _components(pairs, dependent, data.n_workers)
    groups = [data.workers[group_of == g].tolist() for g in range(int(group_of.max()) + 1)]
    order = np.lexsort((pairs.second, pairs.first, ratio, q))
    total = max(data.n_annotations, 1)
    return SharedErrorReport(
        data.workers[pairs.first[order]], data.workers[pairs.second[order]], pairs.n[order],
        ratio[order], q[order], dependent[order], groups, group_of,
        tuple(
            float(data.labels_per_worker[group_of == g].sum() / total) for g in range(len(groups))
        ),
        _measured_remedy(data, group_of, _is_dense(data, pairs)) if pruning and groups else "",
        pairs.equal > COARSE,
    )  # fmt: skip


def _relative(p: Floats) -> Floats:
    """Return p-values relative to the spread of all pairs, where the model is not exact.

    Workers differ in more than noise, so the scores of honest pairs may spread more than by chance.
    A minority of dependent pairs does not change the median and the robust spread.
    """
    from scipy.special import ndtr, ndtri

    z = ndtri(np.clip(p, 1e-300, 1 - 1e-16))
    middle = float(np.median(z))
    spread = MAD * float(np.median(np.abs(z - middle)))
    return np.asarray(ndtr((z - min(middle, 0.0)) / max(spread, 1.0)))


def _measured_remedy(data: CrowdNumbers, group_of: Longs, dense: bool) -> str:
    """Return the remedies that predict the held-out labels of the other workers better."""
    outside = group_of < 0
    if outside.sum() < 2:
        return "Collect labels by other workers."
    first = np.unique(group_of, return_index=True)[1]
    spare = ~outside
    spare[first[group_of[first] >= 0]] = False  # one worker of each group stays
    scored = outside[data.worker]
    found = []
    effect = effect_of_removal(data, spare, scored=scored)
    if effect.helps:
        found.append(f"Keep one worker of each group: for gaussian-em, {effect}.")
    if dense:
        method = get_method("covariance-regression")()
        effect = effect_of_removal(data, np.zeros_like(spare), scored=scored, other=method)
        if effect.helps:
            found.append(
                "Use covariance-regression: against gaussian-em, it changes the log-probability of "
                f"such labels by {effect.score_change:+.4f} ± {effect.score_error:.4f}."
            )
    return " ".join(found) or "Collect labels by other workers; no remedy was better on these data."


def _is_dense(data: Annotations, pairs: _Pairs) -> bool:
    """Return whether half of all pairs of workers share ten tasks."""
    J = int((data.labels_per_worker > 0).sum())
    return bool((pairs.n >= 10).sum() >= J * (J - 1) / 4)


def _pairs_of_workers(view: NumberView, min_shared: int) -> _Pairs:
    data = view.data
    level = _levels(view)
    value = _without_habits(view, level)
    first, second = _label_pairs(data)
    apart = (value[first] - value[second]) ** 2
    equal = float(np.mean(view.value[first] == view.value[second])) if len(first) else 0.0
    positive = apart[apart > 0]
    if len(positive):
        apart = np.minimum(apart, OUTLIER * float(np.median(positive)))
    J = data.n_workers
    key = data.worker[first].astype(np.int64) * J + data.worker[second]
    pair, code = np.unique(key, return_inverse=True)
    n = np.bincount(code)
    mean = np.bincount(code, apart) / np.maximum(n, 1)
    keep = n >= min_shared
    # Squared normal differences have a variance of twice their squared mean.
    spread = np.bincount(code, (apart - mean[code]) ** 2) / np.maximum(n - 1, 1)
    usable = keep & (mean > 0)
    kurtosis = 2.0
    if usable.any():
        kurtosis = max(
            2.0, float(np.average(spread[usable] / mean[usable] ** 2, weights=n[usable]))
        )
    return _Pairs(pair[keep] // J, pair[keep] % J, n[keep], mean[keep], kurtosis, equal)


def _levels(view: NumberView) -> Longs:
    """Return the level of each annotation's task: one of a few quantiles of the tasks' medians."""
    data = view.data
    order = np.lexsort((view.value, data.task))
    count = data.labels_per_task
    middle = np.minimum(data.indptr[:-1] + count // 2, max(len(order) - 1, 0))
    typical = view.value[order][middle]
    ends = np.unique(np.quantile(typical[count > 0], np.linspace(0, 1, N_LEVELS + 1)[1:-1]))
    return np.asarray(np.searchsorted(ends, typical, side="left")[data.task], dtype=np.int64)


def _without_habits(view: NumberView, level: Longs) -> Floats:
    """Return numbers less the worker's mean at each level of tasks, shrunk to that of the crowd.

    Workers who both compress the scale, or answer zero below the same threshold, are close to each
    other without sharing errors.
    """
    data, value, size = view.data, view.value, int(level.max(initial=0)) + 1
    crowd = np.bincount(level, value, size) / np.maximum(np.bincount(level, minlength=size), 1)
    apart = value - crowd[level]
    cell = data.worker.astype(np.int64) * size + level
    n = np.bincount(cell, minlength=data.n_workers * size)
    habit = np.bincount(cell, apart, data.n_workers * size) / (n + HABIT_PRIOR)
    return np.asarray(value - habit[cell])


def _label_pairs(data: Annotations) -> tuple[Longs, Longs]:
    """Return all pairs of annotations of the same task, of a sample of tasks if there are many."""
    count = data.labels_per_task
    cost = np.cumsum(count * (count - 1) // 2)
    keep = np.ones(data.n_tasks, dtype=bool)
    if cost[-1] > MOST_PAIRS:
        order = np.random.default_rng(0).permutation(data.n_tasks)
        total = np.cumsum((count * (count - 1) // 2)[order])
        keep[order[total > MOST_PAIRS]] = False
    first, second = [], []
    start = data.indptr[:-1]
    for size in np.unique(count[keep & (count > 1)]).tolist():
        at = start[keep & (count == size)]
        a, b = np.triu_indices(size, 1)
        first.append((at[:, None] + a).ravel())
        second.append((at[:, None] + b).ravel())
    if not first:
        empty = np.array([], dtype=np.int64)
        return empty, empty
    one, two = np.concatenate(first), np.concatenate(second)
    apart = data.worker[one] != data.worker[two]  # repeated labels of one worker
    one, two = one[apart], two[apart]
    swap = data.worker[one] > data.worker[two]
    return np.where(swap, two, one), np.where(swap, one, two)


def _additive_fit(pairs: _Pairs, n_workers: int) -> Floats:
    """Return a (n_workers,) with D ≈ a_j + a_l, by alternating weighted medians."""
    ends = np.concatenate([pairs.first, pairs.second])
    other = np.concatenate([pairs.second, pairs.first])
    squared, weight = np.tile(pairs.squared, 2), np.tile(pairs.n.astype(np.float64), 2)
    half = 0.5 * float(np.median(pairs.squared))
    noise = np.full(n_workers, half)
    for _ in range(ROUNDS):
        update = _weighted_median(ends, squared - noise[other], weight, n_workers)
        noise = 0.5 * (noise + np.maximum(np.where(np.isnan(update), half, update), 0.0))
    return noise


def _weighted_median(group: Longs, value: Floats, weight: Floats, n_groups: int) -> Floats:
    """Return the weighted median of each group; NaN without values."""
    order = np.lexsort((value, group))
    sorted_group, total = group[order], np.bincount(group, weight, n_groups)
    running = np.cumsum(weight[order])
    before = np.concatenate([[0.0], np.cumsum(total)[:-1]])
    reached = running - before[sorted_group] >= 0.5 * total[sorted_group] - 1e-9
    found = np.full(n_groups, np.nan)
    at = np.flatnonzero(reached)[::-1]  # the first of each group is written last
    found[sorted_group[at]] = value[order][at]
    return found


def _components(pairs: _Pairs, dependent: Mask, n_workers: int) -> Longs:
    """Return the number of each worker's group, the largest first; -1 for workers alone."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    one, two = pairs.first[dependent], pairs.second[dependent]
    graph = coo_array((np.ones(len(one)), (one, two)), shape=(n_workers, n_workers))
    _, code = connected_components(graph, directed=False)
    size = np.bincount(code)
    order = np.argsort(-size, kind="stable")
    place = np.full(len(size), -1, dtype=np.int64)
    several = order[size[order] > 1]
    place[several] = np.arange(len(several))
    return np.asarray(place[code])
