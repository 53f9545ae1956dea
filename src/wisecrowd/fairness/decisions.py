r"""Decisions with a bounded gap between groups of tasks.

Each group gets its own threshold on the score of its tasks. The thresholds maximise the expected
number of right decisions,

.. math:: \sum_i d_i s_i + (1 - d_i)(1 - s_i), \qquad d_i \in \{0, 1\},

under the condition that a rate, by default the selection rate, differs by at most
:math:`\varepsilon` between groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.attributes import Groups, as_groups
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.metrics.fairness import LEAST_TASKS

CONSTRAINTS = ("demographic-parity", "equal-opportunity", "false-positive-rate")
EPSILONS = (1.0, 0.2, 0.15, 0.1, 0.05, 0.02, 0.0)
FRACTION = 1e-6


@dataclass(frozen=True, eq=False)
class FairDecision:
    """Decisions and what they cost.

    Attributes
    ----------
    labels : (n_tasks,) classes
    changed : (n_tasks,) bool
        Whether the decision differs from the one without a condition.
    thresholds : mapping of group to float
        Smallest score that is decided as positive; for two classes.
    gap : float
        Difference of the rate between groups that was reached.
    expected_accuracy, free_accuracy : float
        Expected share of right decisions, with the condition and without.
    notes : tuple of str
    """

    labels: NDArray[Any]
    changed: NDArray[np.bool_]
    thresholds: dict[str, float]
    gap: float
    expected_accuracy: float
    free_accuracy: float
    notes: tuple[str, ...] = ()


def decide(
    probas: Any,
    groups: Any,
    *,
    constraint: str = "demographic-parity",
    epsilon: float = 0.05,
    classes: Sequence[Any] | None = None,
    positive: Any = None,
    truth: Any = None,
    min_group: int = LEAST_TASKS,
) -> FairDecision:
    """Decide every task so that a rate differs by at most ``epsilon`` between groups.

    Parameters
    ----------
    probas : fitted method, (n_tasks, n_classes) or (n_tasks,) array
        Probabilities of the classes, or of the positive class. Confusion-matrix methods give
        probabilities of almost 0 or 1, which rank poorly: prefer :func:`vote_scores`.
    groups : (n_tasks,) array-like, or Groups
        Tasks without a group keep their decision.
    constraint : "demographic-parity", "equal-opportunity" or "false-positive-rate"
        The rate to equalise: of positive decisions, or of these among tasks that are truly
        positive or negative. The last two need ``truth``.
    epsilon : float
        Largest difference between groups.
    classes : sequence, optional
        Ids of the classes; by default those of the fitted method, or 0, 1, 2 ...
    positive : class, optional
        The class that is given or refused; by default the last one. With more than two classes
        demographic parity holds for every class.
    truth : (n_tasks,) array-like, optional
        True classes, None where unknown.
    min_group : int
        Tasks of groups with fewer tasks keep their decision: the rate of one task is 0 or 1, and
        would force that of all others.

    Notes
    -----
    Two classes are solved exactly by a sweep over all rates, O(groups × tasks log tasks). More
    classes are a linear program, whose few fractional tasks are rounded. Ties at a threshold are
    split in the order of tasks, and the result says so. Equal rates need not be just: where the
    groups differ in truth, equal selection rates cost accuracy in one of them.

    Examples
    --------
    >>> score = np.array([0.9, 0.8, 0.7, 0.6, 0.6, 0.4, 0.3, 0.2])
    >>> decide(score, list("aaaabbbb"), epsilon=1.0, min_group=1).labels.tolist()
    [1, 1, 1, 1, 1, 0, 0, 0]
    >>> decide(score, list("aaaabbbb"), epsilon=0.25, min_group=1).labels.tolist()
    [1, 1, 1, 0, 1, 1, 0, 0]
    """
    check_number("epsilon", epsilon, 0.0, 1.0)
    if constraint not in CONSTRAINTS:
        raise ParameterError(
            f"The constraint is {constraint!r}{suggestion(constraint, CONSTRAINTS)}; give one of "
            f"{', '.join(CONSTRAINTS)}."
        )
    table, names = _probabilities(probas, classes)
    if constraint != "demographic-parity" and truth is None:
        raise ParameterError(f"{constraint} needs true classes; give truth.")
    known = groups if isinstance(groups, Groups) else as_groups(list(groups), "groups")
    if len(known.code) != len(table):
        raise DataError(
            f"There are {len(known.code)} groups for {len(table)} tasks; give one per task."
        )
    check_integer("min_group", min_group, 1)
    known, small = _large_groups(known, min_group)
    found = _decided(table, names, known, constraint, epsilon, positive, truth)
    return replace(found, notes=(*found.notes, *small))


def _decided(
    table: Floats,
    names: NDArray[Any],
    known: Groups,
    constraint: str,
    epsilon: float,
    positive: Any,
    truth: Any,
) -> FairDecision:
    if table.shape[1] > 2 and positive is None:
        if constraint != "demographic-parity":
            raise ParameterError(f"{constraint} needs a positive class; name it.")
        return _decide_classes(table, names, known, epsilon)
    chosen = _place_of(positive, names)
    true = None if truth is None else _true_positives(truth, names[chosen])
    return _decide_positive(table, names, known, chosen, constraint, true, epsilon)


def frontier(
    probas: Any,
    groups: Any,
    *,
    epsilons: Sequence[float] = EPSILONS,
    truth: Any = None,
    **options: Any,
) -> dict[str, Floats]:
    """Return the price of each bound: gap, expected accuracy and, with truth, true accuracy.

    Parameters
    ----------
    probas, groups, **options
        As for :func:`decide`.
    epsilons : sequence of float
    truth : (n_tasks,) array-like, optional
    """
    rows: dict[str, list[float]] = {}
    for epsilon in epsilons:
        found = decide(probas, groups, epsilon=epsilon, truth=truth, **options)
        row = {"epsilon": epsilon, "gap": found.gap, "expected_accuracy": found.expected_accuracy}
        if truth is not None:
            pairs = zip(found.labels.tolist(), list(truth), strict=True)
            judged = [label == true for label, true in pairs if true is not None]
            row["accuracy"] = float(np.mean(judged))
        for name, value in row.items():
            rows.setdefault(name, []).append(float(value))
    return {name: np.array(values) for name, values in rows.items()}


def vote_scores(labels: CrowdLabels, fit: Any) -> Floats:
    """Return the share (n_tasks, n_classes) of votes, weighted by the workers' margin over chance.

    These scores rank tasks better than the posteriors of confusion-matrix methods, which are almost
    0 or 1. Tasks without labels get equal shares.
    """
    K = labels.n_classes
    margin = np.maximum(np.asarray(fit.worker_accuracy_) - 1 / K, 0.01)
    weight = margin[labels.worker] * (1.0 if labels.weight is None else labels.weight)
    cell = labels.task.astype(np.int64) * K + labels.label
    votes = np.bincount(cell, weight, labels.n_tasks * K).reshape(-1, K)
    total = votes.sum(axis=1, keepdims=True)
    return np.where(total > 0, votes / np.where(total > 0, total, 1.0), 1 / K)


# ------------------------------------------------------------------------------------ two classes


def _decide_positive(
    table: Floats,
    names: NDArray[Any],
    groups: Groups,
    chosen: int,
    constraint: str,
    true: NDArray[np.int8] | None,
    epsilon: float,
) -> FairDecision:
    """Choose how many tasks of each group are decided as the chosen class."""
    score, others = table[:, chosen], table.copy()
    others[:, chosen] = -1.0
    second = others.argmax(axis=1)
    other = table[np.arange(len(table)), second]
    if true is not None and constraint == "demographic-parity":
        true = None  # without truth, as it would be used
    cuts = _Cuts(score - other, other, groups, constraint, true)
    free, bound = cuts.best(1.0), cuts.best(epsilon)
    plain, label = ((score > other).astype(bool) for _ in range(2))
    thresholds, notes = {}, []
    for name, rows, before, after in zip(groups.names, cuts.order, free, bound, strict=True):
        plain[rows], label[rows] = False, False
        plain[rows[:before]], label[rows[:after]] = True, True
        thresholds[name] = float(score[rows[after - 1]]) if after else np.inf
        if 0 < after < len(rows) and score[rows[after - 1]] == score[rows[after]]:
            notes.append(f"Tasks of the group {name} with equal scores are decided differently.")
    gap = cuts.spread(bound)
    if gap > epsilon + 1e-9:
        notes.append(f"The smallest gap that the sizes of the groups allow is {gap:.3f}.")
    return FairDecision(
        labels=names[np.where(label, chosen, second)],
        changed=label != plain,
        thresholds=thresholds,
        gap=gap,
        expected_accuracy=cuts.value(bound),
        free_accuracy=cuts.value(free),
        notes=tuple(notes),
    )


class _Cuts:
    """For each group its tasks by falling margin, and the rate and gain of each number selected."""

    def __init__(
        self,
        margin: Floats,
        other: Floats,
        groups: Groups,
        constraint: str,
        true: NDArray[np.int8] | None,
    ) -> None:
        self.order: list[NDArray[np.int64]] = []
        self.rate: list[Floats] = []
        self.gain: list[Floats] = []
        for number, name in enumerate(groups.names):
            rows = np.flatnonzero(groups.code == number)
            rows = rows[np.argsort(-margin[rows], kind="stable")]
            counted, step, start = np.ones(len(rows)), margin[rows], float(other[rows].sum())
            if true is not None:
                wanted = 1 if constraint == "equal-opportunity" else 0
                counted = (true[rows] == wanted).astype(np.float64)
                step = np.where(true[rows] < 0, 0.0, 2.0 * true[rows] - 1)
                start = float((true[rows] == 0).sum())
                if not counted.any():
                    raise DataError(
                        f"The group {name!r} has no task that is truly "
                        f"{'positive' if wanted else 'negative'}; give truth of some."
                    )
            self.order.append(rows)
            self.rate.append(np.append(0.0, np.cumsum(counted)) / counted.sum())
            self.gain.append(start + np.append(0.0, np.cumsum(step)))

    def best(self, epsilon: float) -> list[int]:
        """Return the number of selected tasks of each group.

        Every rate that occurs is the lower end of the band once; each group then takes its best
        number with a rate inside the band.
        """
        slack = 1e-12
        ends = np.unique(np.concatenate(self.rate))
        total = np.zeros(len(ends))
        cuts = []
        for rate, gain in zip(self.rate, self.gain, strict=True):
            first = np.searchsorted(rate, ends - slack)
            last = np.searchsorted(rate, ends + epsilon + slack, side="right") - 1
            place = _best_between(gain, first, np.maximum(last, first))
            possible = (last >= first) & (first < len(rate))
            total += np.where(possible, gain[np.minimum(place, len(gain) - 1)], -np.inf)
            cuts.append(place)
        if not np.isfinite(total).any():  # the rates of small groups are too coarse
            return self.best(self._least())
        chosen = int(np.argmax(total > total.max() - 1e-9))
        return [int(place[chosen]) for place in cuts]

    def _least(self) -> float:
        """Return the smallest bound at which every band with a rate of each group is possible."""
        return float(max(np.diff(rate).max() for rate in self.rate))

    def spread(self, cuts: Sequence[int]) -> float:
        rates = [float(rate[cut]) for rate, cut in zip(self.rate, cuts, strict=True)]
        return max(rates) - min(rates)

    def value(self, cuts: Sequence[int]) -> float:
        gains = [float(gain[cut]) for gain, cut in zip(self.gain, cuts, strict=True)]
        return sum(gains) / max(sum(map(len, self.order)), 1)


def _best_between(values: Floats, first: NDArray[Any], last: NDArray[Any]) -> NDArray[np.int64]:
    """Return the first place of the largest value in each range, by tables of powers of two."""
    n = len(values)
    first, last = np.minimum(first, n - 1), np.minimum(last, n - 1)
    best = [np.arange(n)]
    width = 1
    while 2 * width <= n:
        left, right = best[-1][: n - 2 * width + 1], best[-1][width : n - width + 1]
        best.append(np.where(values[right] > values[left] + 1e-12, right, left))
        width *= 2
    level = np.floor(np.log2(last - first + 1)).astype(np.int64)
    found = np.empty(len(first), dtype=np.int64)
    for number, table in enumerate(best):
        rows = level == number
        left, right = table[first[rows]], table[last[rows] - 2**number + 1]
        found[rows] = np.where(values[right] > values[left] + 1e-12, right, left)
    return found


# ------------------------------------------------------------------------------------ more classes


def _decide_classes(
    table: Floats, names: NDArray[Any], groups: Groups, epsilon: float
) -> FairDecision:
    """Choose the class of each task so that every class is given at about the same rate."""
    inside = groups.code >= 0
    plain = table.argmax(axis=1)
    label = plain.copy()
    label[inside], n_rounded = solve_classes(table[inside], groups.code[inside], epsilon)
    rates = [
        np.bincount(label[groups.code == number], minlength=table.shape[1])
        / max(int((groups.code == number).sum()), 1)
        for number in range(len(groups.names))
    ]
    notes = []
    gap = float(np.ptp(rates, axis=0).max())
    if gap > epsilon + 1e-9:
        notes.append(f"{n_rounded} tasks were rounded; the gap is {gap:.3f}.")
    rows = np.flatnonzero(inside)
    return FairDecision(
        labels=names[label],
        changed=label != plain,
        thresholds={},
        gap=gap,
        expected_accuracy=float(table[rows, label[rows]].mean()),
        free_accuracy=float(table[rows, plain[rows]].mean()),
        notes=tuple(notes),
    )


# ------------------------------------------------------------------------------------------ inputs


def _large_groups(groups: Groups, least: int) -> tuple[Groups, tuple[str, ...]]:
    """Return the groups with enough tasks; others become missing, with a note."""
    count = np.bincount(groups.code[groups.code >= 0], minlength=len(groups.names))
    large = np.flatnonzero(count >= least)
    if len(large) < 2:
        sizes = ", ".join(f"{name} {n}" for name, n in zip(groups.names, count, strict=True))
        raise DataError(
            f"Fewer than two groups have {least} tasks ({sizes}); a bound on gaps needs them."
        )
    small = [name for name, n in zip(groups.names, count, strict=True) if n < least]
    if not small:
        return groups, ()
    place = np.full(len(groups.names) + 1, -1, dtype=np.int32)  # the last is that of missing ones
    place[large] = np.arange(len(large), dtype=np.int32)
    names = tuple(groups.names[number] for number in large)
    note = f"Groups with fewer than {least} tasks keep their decisions: {', '.join(small)}."
    return Groups(place[groups.code], names), (note,)


def _probabilities(probas: Any, classes: Sequence[Any] | None) -> tuple[Floats, NDArray[Any]]:
    """Return probabilities (n_tasks, n_classes) and the ids of the classes."""
    if hasattr(probas, "probas_"):
        classes = probas.classes_ if classes is None else classes
        probas = probas.probas_
    table = np.asarray(probas.toarray() if hasattr(probas, "toarray") else probas, np.float64)
    if table.ndim == 1:
        table = np.column_stack([1 - table, table])
    if table.ndim != 2 or table.shape[1] < 2 or not len(table):
        raise DataError(
            f"The probabilities have shape {table.shape}; give one row per task and one column per "
            "class, or the probability of the positive class."
        )
    if not np.isfinite(table).all() or table.min() < -1e-9 or table.max() > 1 + 1e-9:
        raise DataError("The probabilities must lie between 0 and 1.")
    names = np.arange(table.shape[1]) if classes is None else np.asarray(classes)
    if len(names) != table.shape[1]:
        raise DataError(f"There are {len(names)} classes for {table.shape[1]} columns.")
    return table, names


def _place_of(positive: Any, names: NDArray[Any]) -> int:
    if positive is None:
        return len(names) - 1
    found = [number for number, name in enumerate(names.tolist()) if name == positive]
    if not found:
        raise ParameterError(
            f"The positive class {positive!r} is not among the classes "
            f"{', '.join(map(str, names))}{suggestion(positive, names)}."
        )
    return found[0]


def _true_positives(truth: Any, positive: Any) -> NDArray[np.int8]:
    """Return 1 for the positive class, 0 for others and -1 where the truth is unknown."""
    values = list(truth)
    return np.array([-1 if one is None else int(one == positive) for one in values], np.int8)


def solve_classes(table: Floats, group: NDArray[Any], epsilon: float) -> tuple[NDArray[Any], int]:
    r"""Return the class of each task, and the number of tasks that were rounded.

    .. math::
        \max_x \sum_{ik} x_{ik} q_{ik}, \quad \sum_k x_{ik} = 1, \quad
        m_k \le \frac{1}{n_a} \sum_{i \in a} x_{ik} \le m_k + \varepsilon

    for all groups a and classes k. At most as many tasks are fractional as there are active
    conditions; each takes its largest part.

    Parameters
    ----------
    table : (n, K) probabilities
    group : (n,) codes from 0
    epsilon : float

    Examples
    --------
    >>> table = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.1, 0.9]])
    >>> solve_classes(table, np.array([0, 0, 1, 1]), 0.0)[0].tolist()
    [0, 1, 0, 1]
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, hstack, kron, vstack

    n, K = table.shape
    size = np.bincount(group)
    member = coo_array((1 / size[group], (group, np.arange(n))), shape=(len(size), n))
    rates = kron(member, np.eye(K))  # row a·K + k, column i·K + k
    lower = kron(np.ones((len(size), 1)), np.eye(K))
    below = hstack([-rates, lower])
    above = hstack([rates, -lower])
    one_each = hstack([kron(np.eye(1), kron(_identity(n), np.ones((1, K)))), coo_array((n, K))])
    found = linprog(
        -np.concatenate([table.ravel(), np.zeros(K)]),
        A_ub=vstack([below, above]).tocsr(),
        b_ub=np.concatenate([np.zeros(len(size) * K), np.full(len(size) * K, epsilon)]),
        A_eq=one_each.tocsr(),
        b_eq=np.ones(n),
        bounds=(0, 1),
        method="highs",
    )
    if found.x is None:
        raise DataError("The linear program of the decisions has no solution; raise epsilon.")
    share = found.x[: n * K].reshape(n, K)
    return share.argmax(axis=1), int((share.max(axis=1) < 1 - FRACTION).sum())


def _identity(n: int) -> Any:
    from scipy.sparse import eye_array

    return eye_array(n)
