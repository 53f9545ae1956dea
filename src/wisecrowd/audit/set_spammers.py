"""Spammers of sets: ticks unrelated to those of the others, opposed to them, or always the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.answer_pruning import RemovalEffect, effect_of_removal
from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.audit.set_view import SetView, set_view
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.sets import CrowdSets
from wisecrowd.families.dependence import benjamini_hochberg

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEWEST = 8  # sets of a worker who is tested
LITTLE = 1 / 4  # share of the typical information, which grows with the squared correlation
SURE = 2.576  # standard errors: one-sided 99.5%, because every worker is tested
WIDTH = 1.959963984540054
SAME_SET = 1e-3  # probability that an honest worker gives one set to all of its tasks


@dataclass(frozen=True, eq=False)
class SetSpammerReport(Part):
    """Result of the search for spammers of sets; arrays have one entry per worker.

    Attributes
    ----------
    workers, n_labels
        Ids, and numbers of sets on tasks that others labelled too.
    correlation, low, high
        Correlation of the ticks with the shares of the others' ticks, and its 95% interval.
    testable : bool
        Whether a typical worker with as many sets would have been distinguished from a spammer.
    unrelated, against, constant : bool
        Ticks unrelated to the others'; opposed to them; the same set for all tasks although the
        others' differ.
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
    against: Mask
    constant: Mask
    typical: float
    _pruning: RemovalEffect | None = None

    @property
    def accused(self) -> Mask:
        """(n_workers,): workers whom pruning removes."""
        return self.unrelated | self.against | self.constant

    def tables(self) -> dict[str, Table]:
        """Return the table of workers."""
        names = (
            "n_labels", "correlation", "low", "high", "testable", "unrelated", "against",
            "constant",
        )  # fmt: skip
        return {
            "spammers": {"worker": self.workers} | {name: getattr(self, name) for name in names}
        }

    def findings(self) -> list[Finding]:
        """Return spammers by what they do, and the lack of any signal."""
        found = []
        if self.typical == 0:
            found.append(Finding(
                "no-signal", "high", 1.0, (),
                "No worker's sets follow those of the others: they are all random, or too few "
                "tasks are shared.",
                "Check the task and label columns; collect more labels of the same tasks.",
            ))  # fmt: skip
        kinds = (
            ("constant-answers", self.constant, "gave the same set to all of their tasks"),
            ("adversaries", self.against, "ticked what the others leave out"),
            ("spammers", self.unrelated, "gave sets that have nothing to do with the others'"),
        )
        return found + [self._finding(name, who, did) for name, who, did in kinds if who.any()]

    def _finding(self, name: str, who: Mask, did: str) -> Finding:
        order = np.argsort(-self.n_labels[who], kind="stable")
        ids = self.workers[who][order]
        share = float(self.n_labels[who].sum() / max(int(self.n_labels.sum()), 1))
        severity = "high" if share >= 0.2 else "medium" if share >= 0.02 else "low"
        return Finding(
            name, severity, share, tuple(ids.tolist()),
            f"{len(ids)} worker{'s' if len(ids) > 1 else ''} ({describe_ids(ids)}; {share:.1%} of "
            f"all labels, which is the score) {did}.",
            self._remedy(),
        )  # fmt: skip

    def _remedy(self) -> str:
        how = for_reader(
            'wisecrowd.audit.clean(data, ["spammers"])',
            "wisecrowd audit FILE --type sets --prune-to CLEAN.csv",
        )
        if self._pruning is not None and not self._pruning.helps:
            return (
                f"Use shared-two-coin, which gives them little weight: {self._pruning}. Do not "
                "give them more tasks."
            )
        if self._pruning is None:
            return f"Prune them ({how}), or use shared-two-coin, which gives them little weight."
        return f"Prune them ({how}): for shared-two-coin, {self._pruning}."


def find_set_spammers(
    data: CrowdSets, *, level: float = 0.01, view: SetView | None = None, pruning: bool = True
) -> SetSpammerReport:
    r"""Find workers whose sets do not follow the tasks, without truth.

    The test is the correlation :math:`r_j` of a worker's ticks with the shares of the others' ticks
    (:mod:`wisecrowd.audit.set_view`). A worker is *unrelated* if independence is not rejected at
    ``level``, although a typical worker with as many sets would be at twice the critical value, and
    if the correlation is, with 99.5% confidence, under half of the typical one. It is *against* the
    others if the correlation is negative at a false discovery rate of ``level``, and *constant* if
    all of its sets are equal, where others would all give that set with a probability below .001.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.sets(100, 8, simulate.Dense())
    >>> task, worker, sets = (crowd.data.to_dict()[name] for name in ("task", "worker", "label"))
    >>> sets[worker == 7] = np.random.default_rng(0).permutation(sets[worker == 7])
    >>> report = find_set_spammers(CrowdSets.from_arrays(task, worker, sets))
    >>> report.workers[report.unrelated]
    array([7])
    """
    from scipy.special import ndtr, ndtri

    check_number("level", level, 0.0, 1.0)
    view = set_view(data) if view is None else view
    n, r = view.n, view.correlation
    enough = (n >= FEWEST) & (view.information > 0)
    constant = _constant(view)
    if (n >= FEWEST).sum() < 2:
        raise NotApplicable(
            f"Spammers cannot be looked for: fewer than two workers share {FEWEST} tasks with "
            "others."
        )
    critical = float(-ndtri(level / 2))
    z = r * view.information
    clear = enough & (benjamini_hochberg(np.where(enough, ndtr(-z), 1.0)) <= level)
    typical = float(np.median(r[clear])) if clear.any() else 0.0
    if not clear.any() and not (view.information > 2 * critical).any():
        raise NotApplicable(
            "Spammers cannot be looked for: the workers share too few tasks to be compared."
        )
    error = 1 / np.maximum(view.information, 1e-9)
    testable = enough & (typical * view.information >= 2 * critical)
    against = enough & (benjamini_hochberg(np.where(enough, ndtr(z), 1.0)) <= level)
    silent = testable & (np.abs(z) <= critical)
    unrelated = silent & (r + SURE * error <= np.sqrt(LITTLE) * typical) & ~constant
    low, high = np.clip(r - WIDTH * error, -1, 1), np.clip(r + WIDTH * error, -1, 1)
    report = SetSpammerReport(
        data.workers, n, r, low, high, testable, unrelated, against & (typical > 0) & ~constant,
        constant, typical,
    )  # fmt: skip
    if pruning and report.accused.any():
        return replace(report, _pruning=effect_of_removal(data, report.accused))
    return report


def _constant(view: SetView) -> Mask:
    """Return whether a worker gave one set where others would not have done so."""
    data, J, code = view.data, view.data.n_workers, view.set_code
    low, high = np.full(J, np.iinfo(np.int64).max), np.full(J, -1)
    np.minimum.at(low, data.worker, code)
    np.maximum.at(high, data.worker, code)
    key = data.task.astype(np.int64) * (int(code.max(initial=0)) + 1) + code
    _, place, count = np.unique(key, return_inverse=True, return_counts=True)
    same = np.bincount(data.worker, count[place] - 1, J)
    others = np.bincount(data.worker, data.labels_per_task[data.task] - 1, J)
    chance = ((same + 0.5) / (others + 1)) ** view.n
    return np.asarray((high == low) & (view.n >= FEWEST) & (chance < SAME_SET / max(J, 1)))
