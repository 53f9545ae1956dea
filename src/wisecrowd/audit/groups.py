"""Dependent groups: workers who share a source and should count once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.clones import by_group
from wisecrowd.audit.part import Part, Table
from wisecrowd.audit.surprising_pairs import compared, surprising_pairs
from wisecrowd.core.findings import Finding
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.families.dependence import Dependence
from wisecrowd.families.worker_groups import LEAST_EXCESS, LEVEL, compare_workers, linked_groups

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GroupReport(Part):
    """Groups of workers whose labels depend on each other.

    Attributes
    ----------
    workers : (n_workers,) ids
    group : (n_workers,)
        Index of each worker's group, -1 for independent workers.
    size : (n_groups,)
    agreement, expected : (n_groups,)
        Mean share of equal labels of the pairs within a group, and the share expected from their
        skills.
    surprising : table
        The ten pairs with the most surprising agreement, whether accused or not.
    """

    workers: NDArray[Any]
    group: NDArray[np.int32]
    size: NDArray[np.int64]
    agreement: Floats
    expected: Floats
    surprising: Table = field(default_factory=dict)

    @property
    def n_effective(self) -> int:
        """Number of groups plus number of independent workers."""
        return len(self.size) + int((self.group < 0).sum())

    def tables(self) -> dict[str, Table]:
        """Return the tables of workers, of groups and of the most surprising pairs."""
        return {
            "group_workers": {"worker": self.workers, "group": self.group},
            "groups": {
                "group": np.arange(len(self.size)),
                "size": self.size,
                "agreement": self.agreement,
                "expected": self.expected,
            },
            "surprising_pairs": self.surprising,
        }

    def findings(self) -> list[Finding]:
        """Return one finding for each group."""
        return [self._finding(number) for number in range(len(self.size))]

    def _finding(self, number: int) -> Finding:
        ids = self.workers[self.group == number]
        agreement, expected = self.agreement[number], self.expected[number]
        large = len(ids) >= 0.2 * len(self.workers)
        return Finding(
            "dependent-group", "medium" if large else "low", float(agreement - expected),
            tuple(ids.tolist()),
            f"{len(ids)} workers ({describe_ids(ids)}) depend on each other: two of them agree on "
            f"{agreement:.0%} of their tasks, and would on {expected:.0%} were they independent; "
            "the score is the difference.",
            "Count them once: group-aware-dawid-skene or group-aware-majority-vote.",
        )  # fmt: skip


def find_dependent_groups(
    labels: CrowdLabels,
    *,
    level: float = LEVEL,
    least_excess: float = LEAST_EXCESS,
    min_shared: float | None = None,
    found: Dependence | None = None,
) -> GroupReport:
    """Find groups of workers who agree more than their skills explain, right or wrong.

    Parameters
    ----------
    labels : CrowdLabels
    level : float
        False discovery rate among dependent pairs.
    least_excess : float
        Minimum excess of the agreement over the expected agreement to count as dependence.
    min_shared : float, optional
        Minimum number of shared tasks to compare a pair; by default five, or twice the number of
        classes if that is more.
    found : Dependence, optional
        The tested pairs of these labels, if they are known.

    Notes
    -----
    The skills of suspects are estimated without the labels of their whole group, because copies
    confirm each other. See :func:`wisecrowd.families.worker_groups.compare_workers`.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(
    ...     500, 9 * simulate.OneCoinWorkers() + 3 * simulate.Copiers(0.9, sources=2),
    ...     simulate.Dense(), n_classes=3,
    ... )
    >>> report = find_dependent_groups(crowd.labels)
    >>> report.workers[report.group == 0]
    array([ 2,  9, 10, 11])
    """
    check_number("level", level, 0.0, 1.0)
    check_number("least_excess", least_excess, 0.0, 1.0)
    if min_shared is not None or level != LEVEL or least_excess != LEAST_EXCESS:
        found = compare_workers(labels, min_shared, level=level, least_excess=least_excess)
    found = compared(labels, "Dependent groups", found)
    group = linked_groups(found, labels.n_workers, level=level, least_excess=least_excess)
    inside = (group[found.first] >= 0) & (group[found.first] == group[found.second])
    of_pair, n_groups = group[found.first[inside]], int(group.max(initial=-1)) + 1
    return GroupReport(
        workers=labels.workers,
        group=group,
        size=np.bincount(group[group >= 0], minlength=n_groups),
        agreement=by_group(found.agreement[inside], of_pair, n_groups),
        expected=by_group(found.expected[inside], of_pair, n_groups),
        surprising=surprising_pairs(found, labels.workers, group),
    )
