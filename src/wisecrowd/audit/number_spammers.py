"""Spammers of numbers: labels unrelated to those of the others, reversed, or always the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.answer_pruning import RemovalEffect, effect_of_removal
from wisecrowd.audit.number_view import NumberView, group_ranks, number_view
from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.audit.pruning import PruningEffect
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.families.dependence import benjamini_hochberg

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LITTLE = 1 / 4  # share of the typical information, which grows with the squared correlation
SURE = 1.645  # standard errors: one-sided 95%
WIDTH = 1.959963984540054
RANKS = 1.03  # standard error of a rank correlation after Fisher's transformation, times √(n - 3)
FEWEST_EQUAL = 5  # labels of a worker who gives one value only
SAME_VALUE = 1e-3  # probability that an honest worker gives one value to all of its tasks
NOISY = 3.0  # times the typical spread


@dataclass(frozen=True, eq=False)
class NumberSpammerReport(Part):
    """Result of the search for spammers of numbers; arrays have one entry per worker.

    Attributes
    ----------
    workers, n_labels
        Ids, and numbers of labels on tasks that others labelled too.
    correlation, low, high
        Rank correlation with the consensus of the others, and its 95% interval.
    testable : bool
        Whether a typical worker with as many labels would have been distinguished from a spammer.
    unrelated, reversed, constant, noisy : bool
        Labels unrelated to the others'; in reverse order; all equal although the others' are not;
        spread about the others more than three times the typical one, with 95% confidence.
    spread : float
        Standard deviation about the consensus, on the working scale.
    typical : float
        Median correlation of the workers whose correlation is significant; 0 without any.
    """

    workers: NDArray[Any]
    n_labels: NDArray[np.int64]
    correlation: Floats
    low: Floats
    high: Floats
    testable: Mask
    unrelated: Mask
    reversed: Mask
    constant: Mask
    noisy: Mask
    spread: Floats
    typical: float
    _pruning: RemovalEffect | PruningEffect | None = None
    _advice: str = "gaussian-em, which gives them little weight"
    _type: str = "numbers"

    @property
    def accused(self) -> Mask:
        """(n_workers,): workers whom pruning removes."""
        return self.unrelated | self.reversed | self.constant

    def tables(self) -> dict[str, Table]:
        """Return the table of workers."""
        names = (
            "n_labels", "correlation", "low", "high", "testable", "unrelated", "reversed",
            "constant", "noisy", "spread",
        )  # fmt: skip
        return {
            "spammers": {"worker": self.workers} | {name: getattr(self, name) for name in names}
        }

    def findings(self) -> list[Finding]:
        """Return spammers by what they do, noisy workers, and the lack of any signal."""
        found = []
        if self.typical == 0:
            found.append(Finding(
                "no-signal", "high", 1.0, (),
                "No worker's numbers follow those of the others: they are all random, or too few "
                "tasks are shared.",
                "Check the task and value columns; collect more labels of the same tasks.",
            ))  # fmt: skip
        kinds = (
            ("constant-answers", self.constant, "gave one value to all of their tasks"),
            ("reversed-scale", self.reversed & ~self.constant,
             "gave low numbers where the others gave high ones; they may have used the scale "
             "upside down"),
            ("spammers", self.unrelated & ~self.constant,
             "gave numbers that have nothing to do with those of the others"),
        )  # fmt: skip
        found += [self._finding(name, who, did) for name, who, did in kinds if who.any()]
        rest = self.noisy & ~self.accused
        if rest.any():
            found.append(Finding(
                "noisy-workers", "low", self._share(rest), self._ids(rest),
                f"{self._count(rest)} differed from the others by more than three times as much as "
                "a typical worker.",
                f"Use {self._advice}; student-em is for numbers of which only some are far off.",
            ))  # fmt: skip
        return found

    def _finding(self, name: str, who: Mask, did: str) -> Finding:
        share = self._share(who)
        severity = "high" if share >= 0.2 else "medium" if share >= 0.02 else "low"
        return Finding(
            name, severity, share, self._ids(who), f"{self._count(who)} {did}.", self._remedy()
        )

    def _share(self, who: Mask) -> float:
        return float(self.n_labels[who].sum() / max(int(self.n_labels.sum()), 1))

    def _ids(self, who: Mask) -> tuple[Any, ...]:
        order = np.argsort(-self.n_labels[who], kind="stable")
        return tuple(self.workers[who][order].tolist())

    def _count(self, who: Mask) -> str:
        ids = np.array(self._ids(who), dtype=object)
        return (
            f"{len(ids)} worker{'s' if len(ids) > 1 else ''} ({describe_ids(ids)}; "
            f"{self._share(who):.1%} of all labels, which is the score)"
        )

    def _remedy(self) -> str:
        how = for_reader(
            'wisecrowd.audit.clean(data, ["spammers"])',
            f"wisecrowd audit FILE --type {self._type} --prune-to CLEAN.csv",
        )
        method = self._advice.partition(",")[0]
        if self._pruning is None:
            return f"Prune them ({how}), or use {self._advice}."
        if self._pruning.helps:
            return f"Prune them ({how}): for {method}, {self._pruning}."
        return f"Use {self._advice}: {self._pruning}. Do not give them more tasks."


def find_number_spammers(
    data: CrowdNumbers,
    *,
    level: float = 0.01,
    view: NumberView | None = None,
    pruning: bool = True,
) -> NumberSpammerReport:
    r"""Find workers whose numbers do not follow the tasks, without truth.

    The test is the rank correlation :math:`r_j` of a worker's numbers with the leave-one-out
    consensus. A worker is *unrelated* if independence is not rejected at ``level``, although a
    typical worker with as many labels would be at twice the critical value, and if
    the correlation is, with 95% confidence, under half of the typical one, a quarter of its
    information. It is *reversed* if
    the correlation is negative at a false discovery rate of ``level``, and *constant* if all of its
    numbers are equal, where others would all give that value with a probability below .001.

    Parameters
    ----------
    data : CrowdNumbers
    level : float
        Significance level.
    view : NumberView, optional
        View of the same data; by default it is computed.
    pruning : bool
        Whether to measure on held-out labels what the removal of the spammers would change.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> task, worker = np.divmod(np.arange(800), 8)
    >>> value = rng.normal(0, 3, 100)[task] + rng.normal(0, 1, 800)
    >>> value[worker == 7] = rng.normal(0, 3, 100)
    >>> report = find_number_spammers(CrowdNumbers.from_arrays(task, worker, value))
    >>> report.workers[report.unrelated]
    array([7])
    """
    view = number_view(data) if view is None else view
    report = spammer_report(view, level)
    if pruning and report.accused.any():
        return replace(report, _pruning=effect_of_removal(data, report.accused))
    return report


def spammer_report(view: NumberView, level: float) -> NumberSpammerReport:
    """Return the spammers in a view of numbers or grades."""
    from scipy.special import ndtr, ndtri

    check_number("level", level, 0.0, 1.0)
    n, r = view.n, _rank_correlation(view)
    if (n > 3).sum() < 2:
        raise NotApplicable(
            "Spammers cannot be looked for: fewer than two workers share four tasks with others."
        )
    critical = float(-ndtri(level / 2))
    z = r * np.sqrt(np.maximum(n - 1, 0))
    clear = (n > 3) & (benjamini_hochberg(np.where(n > 3, ndtr(-z), 1.0)) <= level)
    typical = float(np.median(r[clear])) if clear.any() else 0.0
    if not clear.any() and not (np.sqrt(np.maximum(n - 1, 0)) > 2 * critical).any():
        raise NotApplicable(
            "Spammers cannot be looked for: the workers share too few tasks to be compared."
        )
    half = RANKS / np.sqrt(np.maximum(n - 3, 1e-9))
    centre = np.arctanh(np.clip(r, -0.999999, 0.999999))
    testable = (n > 3) & (typical * np.sqrt(np.maximum(n - 1, 0)) >= 2 * critical)
    most = np.tanh(centre + SURE * half)
    backwards = benjamini_hochberg(np.where(n > 3, ndtr(z), 1.0)) <= level
    constant = _constant(view)
    unrelated = testable & (np.abs(z) <= critical) & (most <= np.sqrt(LITTLE) * typical)
    return NumberSpammerReport(
        workers=view.data.workers, n_labels=n, correlation=r, low=np.tanh(centre - WIDTH * half),
        high=np.tanh(centre + WIDTH * half), testable=testable, unrelated=unrelated & ~constant,
        reversed=backwards & testable, constant=constant, noisy=_noisy(view), spread=view.spread,
        typical=typical,
    )  # fmt: skip


def _rank_correlation(view: NumberView) -> Floats:
    """Return the rank correlation of each worker's numbers with the consensus; 0 if undefined."""
    rows = np.flatnonzero(view.compared)
    worker, J = view.data.worker[rows], view.data.n_workers
    first = group_ranks(worker, view.value[rows])
    second = group_ranks(worker, view.consensus[rows])
    middle = (view.n + 1) / 2
    a, b = first - middle[worker], second - middle[worker]
    product = np.bincount(worker, a * b, J)
    scale = np.sqrt(np.bincount(worker, a * a, J) * np.bincount(worker, b * b, J))
    return np.where(scale > 0, product / np.maximum(scale, 1e-300), 0.0)


def _constant(view: NumberView) -> Mask:
    """Return whether a worker gave one value where others would not have done so."""
    data, J = view.data, view.data.n_workers
    low, high = np.full(J, np.inf), np.full(J, -np.inf)
    np.minimum.at(low, data.worker, view.value)
    np.maximum.at(high, data.worker, view.value)
    code = np.unique(view.value, return_inverse=True)[1]
    key = data.task.astype(np.int64) * (int(code.max(initial=0)) + 1) + code
    count, place = np.unique(key, return_inverse=True, return_counts=True)[2:0:-1]
    same = np.bincount(data.worker, count[place] - 1, J)
    others = np.bincount(data.worker, data.labels_per_task[data.task] - 1, J)
    chance = ((same + 0.5) / (others + 1)) ** view.n
    found = (high == low) & (view.n >= FEWEST_EQUAL) & (chance < SAME_VALUE / max(J, 1))
    return np.asarray(found)


def _noisy(view: NumberView) -> Mask:
    """Return whether the spread exceeds three times the typical one, with 95% confidence."""
    from scipy.special import chdtri

    df = np.maximum(view.n - 1, 1)
    least = view.spread * np.sqrt(df / chdtri(df, 0.05))
    with np.errstate(invalid="ignore"):
        return np.asarray((view.n >= FEWEST_EQUAL) & (least > NOISY * view.typical_spread))
