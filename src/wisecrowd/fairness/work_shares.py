"""Whom to ask about whom: shares of the work that keep the gap between groups small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.attributes import Groups, as_groups
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.parameter_checks import as_generator, check_number
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.truth import as_gold

SHRINKAGE = 8.0  # gold labels that a worker's rates borrow from the crowd
LEAST_GOLD = 20  # gold tasks of each group and class, over planning and checking


@dataclass(frozen=True, eq=False)
class FairShares:
    """A plan of who labels how much, and what it is worth on tasks it has not seen.

    Attributes
    ----------
    workers : (n_workers,) ids
    shares : (n_workers,)
        Share of the work of each worker; they sum to one.
    epsilon : float
        The bound of the plan: the given one, or the smallest that is possible.
    planned, held_out : mapping of str to float
        Accuracy, true positive gap and false positive gap of a label: on the gold that the plan
        was made from, and on gold that was set aside. A plan believes its own noise, so that only
        the second is worth something.
    equal : mapping of str to float
        The same figures on the gold set aside if everybody has an equal share.
    notes : tuple of str
    """

    workers: NDArray[Any]
    shares: Floats
    epsilon: float
    planned: dict[str, float]
    held_out: dict[str, float]
    equal: dict[str, float]
    notes: tuple[str, ...] = ()


def fair_shares(
    labels: CrowdLabels,
    gold: Any,
    groups: Any,
    *,
    epsilon: float = 0.05,
    diversity: float = 0.2,
    positive: Any = None,
    random_state: Any = 0,
) -> FairShares:
    r"""Plan shares of work that maximise accuracy with bounded gaps between two groups.

    .. math::
        \max_x \sum_j x_j a_j, \qquad |\sum_j x_j (r_j^b - r_j^a)| \le \varepsilon, \qquad
        0 \le x_j \le \frac{1}{d J}, \quad \sum_j x_j = 1,

    where :math:`a_j` is the accuracy of worker j less one standard error, and :math:`r` stands for
    the true and for the false positive rate, both shrunk to the crowd's. Half of the gold makes the
    plan; the other half says what it is worth.

    Parameters
    ----------
    labels : CrowdLabels
    gold : mapping of task to class, or any accepted form
    groups : (n_tasks,) array-like, or Groups
        Two groups; tasks of others are missing (None).
    epsilon : float
        Largest gap of both rates.
    diversity : float
        Least share of the workers who get work.
    positive : class, optional
        By default the last class.
    random_state : int, Generator or None

    References
    ----------
    N. Goel and B. Faltings (2019). Crowdsourcing with fairness, diversity and budget constraints.
    AIES, 297-304.
    """
    check_number("epsilon", epsilon, 0.0, 1.0)
    check_number("diversity", diversity, 1e-6, 1.0)
    known = groups if isinstance(groups, Groups) else as_groups(list(groups), "groups")
    if len(known.names) != 2:
        raise DataError(
            f"A plan is for two groups, and there are {len(known.names)} "
            f"({', '.join(known.names)}); set the others to None."
        )
    truth = as_gold(gold, labels)
    if truth is None:
        raise DataError("A plan needs gold labels of both groups; give them.")
    chosen = labels.n_classes - 1 if positive is None else labels.classes.tolist().index(positive)
    half = _halves(truth, known, chosen, as_generator(random_state))
    first, second = (_rates(labels, truth, known, chosen, half == part) for part in (0, 1))
    active = np.bincount(labels.worker[half[labels.task] == 0], minlength=labels.n_workers) > 0
    most = 1.0 / max(diversity * active.sum(), 1.0)
    shares, reached = _solve(first, active, most, epsilon)
    notes: tuple[str, ...] = ()
    if reached > epsilon + 1e-9:
        notes = (
            f"A gap of {epsilon:g} is not possible with these workers; the smallest is "
            f"{reached:.3f}.",
        )
    even = np.where(active, 1.0, 0.0) / max(int(active.sum()), 1)
    return FairShares(
        workers=labels.workers,
        shares=shares,
        epsilon=max(reached, epsilon),
        planned=first.of(shares),
        held_out=second.of(shares),
        equal=second.of(even),
        notes=notes,
    )


@dataclass(frozen=True, eq=False)
class _Rates:
    """Accuracy (less a standard error) and rate gaps of each worker, shrunk to the crowd's."""

    cautious: Floats
    accuracy: Floats
    true_positive_gap: Floats
    false_positive_gap: Floats

    def of(self, shares: Floats) -> dict[str, float]:
        return {
            "accuracy": float(shares @ self.accuracy),
            "true_positive_gap": float(shares @ self.true_positive_gap),
            "false_positive_gap": float(shares @ self.false_positive_gap),
        }


def _halves(
    truth: NDArray[np.int32], groups: Groups, chosen: int, rng: np.random.Generator
) -> NDArray[np.int8]:
    """Return 0 or 1 for gold tasks, halves of each group and class; -1 for others."""
    half = np.full(len(truth), -1, dtype=np.int8)
    for number, name in enumerate(groups.names):
        for wanted in (True, False):
            rows = np.flatnonzero(
                (groups.code == number) & (truth >= 0) & ((truth == chosen) == wanted)
            )
            if len(rows) < LEAST_GOLD:
                raise DataError(
                    f"The group {name!r} has {len(rows)} gold tasks that are truly "
                    f"{'positive' if wanted else 'negative'}; a plan needs {LEAST_GOLD}."
                )
            half[rng.permutation(rows)] = np.arange(len(rows)) % 2
    return half


def _rates(
    labels: CrowdLabels, truth: NDArray[np.int32], groups: Groups, chosen: int, rows: Any
) -> _Rates:
    J = labels.n_workers
    used = rows[labels.task]
    worker, task = labels.worker[used], labels.task[used]
    said, true = labels.label[used] == chosen, truth[task] == chosen
    right = (labels.label[used] == truth[task]).astype(np.float64)
    n = np.bincount(worker, minlength=J).astype(np.float64)
    accuracy = _shrunk(np.bincount(worker, right, J), n)
    error = np.sqrt(accuracy * (1 - accuracy) / (n + SHRINKAGE))
    gaps = []
    for wanted in (True, False):
        rate = []
        for number in range(2):
            kept = (true == wanted) & (groups.code[task] == number)
            counts = np.bincount(worker[kept], minlength=J).astype(np.float64)
            rate.append(_shrunk(np.bincount(worker[kept & said], minlength=J), counts))
        gaps.append(rate[1] - rate[0])
    return _Rates(accuracy - error, accuracy, gaps[0], gaps[1])


def _shrunk(count: Any, total: Floats) -> Floats:
    mean = float(np.sum(count)) / max(float(total.sum()), 1.0)
    return np.asarray((count + SHRINKAGE * mean) / (total + SHRINKAGE))


def _solve(
    rates: _Rates, active: NDArray[np.bool_], most: float, epsilon: float
) -> tuple[Floats, float]:
    """Return the shares, and the bound that they keep: the smallest possible if the given is not.

    The last variable is the excess over the bound, with a price above any gain of accuracy.
    """
    from scipy.optimize import linprog

    gaps = np.array([rates.true_positive_gap, rates.false_positive_gap])
    conditions = np.column_stack([np.vstack([gaps, -gaps]), -np.ones(4)])
    found = linprog(
        np.append(-rates.cautious, 1000.0),
        A_ub=conditions,
        b_ub=np.full(4, epsilon),
        A_eq=np.append(np.ones(len(active)), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0.0, most if one else 0.0) for one in active] + [(0.0, None)],
        method="highs",
    )
    shares = np.maximum(found.x[:-1], 0.0)
    return shares / shares.sum(), epsilon + float(found.x[-1])
