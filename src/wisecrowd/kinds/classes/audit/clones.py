"""Workers whose labels depend on each other: copies, groups with one source, language models."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import check_remedy, for_reader
from wisecrowd.core.model_workers import only_models
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.part import Part, Table
from wisecrowd.core.types import Codes, Floats
from wisecrowd.kinds.classes.audit.pruning import Pruned, changes_between, without_workers
from wisecrowd.kinds.classes.audit.shared import (
    COPY,
    UNDECIDED,
    compared,
    surprising_pairs,
    unexplained_z,
)
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.dependence import Dependence
from wisecrowd.kinds.classes.families.worker_groups import (
    LEAST_EXCESS,
    LEVEL,
    compare_workers,
    linked_groups,
)

if TYPE_CHECKING:
    from wisecrowd.core.aggregator import Aggregator

LEAST_AGREEMENT = 0.9  # with less agreement, workers are similar but not copies
MARGIN = 3.0  # standard errors below chance from which a group opposes all others


@dataclass(frozen=True, eq=False)
class Clones(Part):
    """Groups of workers who copy each other's labels.

    Attributes
    ----------
    workers : (n_workers,) ids
    group : (n_workers,)
        Index of the group of copies, -1 for none.
    agreement, expected : (n_groups,)
        Mean share of equal labels of the pairs within a group, and the share expected from their
        skills, which are estimated without the group.
    own_z : (n_groups,)
        Agreement beyond what the members' own fitted matrices explain, in standard errors; above 3
        they probably copy. Otherwise they may all be good.
    surprising : table
        The ten pairs with the most surprising agreement, whether accused or not.
    """

    workers: NDArray[Any]
    group: Codes
    agreement: Floats
    expected: Floats
    own_z: Floats
    surprising: Table = field(default_factory=dict)

    @property
    def groups(self) -> list[NDArray[Any]]:
        """Ids of the workers of each group."""
        return [self.workers[self.group == g] for g in range(len(self.agreement))]

    def tables(self) -> dict[str, Table]:
        """Return the tables of workers in groups and of the most surprising pairs."""
        inside = np.flatnonzero(self.group >= 0)
        return {
            "clones": {"worker": self.workers[inside], "group": self.group[inside]},
            "surprising_pairs": self.surprising,
        }

    def findings(self) -> list[Finding]:
        """Return one finding for each group: high if they copy, medium if they may all be good."""
        return [self._finding(g, ids) for g, ids in enumerate(self.groups)]

    def _finding(self, g: int, ids: NDArray[Any]) -> Finding:
        copy, gold = bool(self.own_z[g] > COPY), for_reader("gold=", "--gold")
        once = "Count each group once: " + for_reader(
            "wisecrowd.audit.collapse_clones.", "--prune clones --prune-to CLEAN.csv."
        )
        verdict = (
            "Their own matrices do not explain it either: they probably copy, from each other or "
            "from one source"
            if copy
            else f"{UNDECIDED[0].upper()}{UNDECIDED[1:]}"
        )
        return Finding(
            "clones", "high" if copy else "medium", float(self.agreement[g]), tuple(ids.tolist()),
            f"{len(ids)} workers ({describe_ids(ids)}) give equal labels on "
            f"{self.agreement[g]:.0%} of the tasks that two of them share; their skills, as "
            f"judged by all others, explain {self.expected[g]:.0%}. {verdict}. "
            "The score is the share of equal labels.",
            once if copy
            else f"Give known answers of 20 of their tasks ({gold}). If they copy: "
            + once[0].lower() + once[1:],
        )  # fmt: skip


def find_clones(
    labels: CrowdLabels, *, found: Dependence | None = None, fit: Aggregator | None = None
) -> Clones:
    """Find groups of workers who copy the same labels, completely or in part, with slips.

    The groups are those of :func:`~wisecrowd.audit.find_dependent_groups` whose members give equal
    labels on at least 90% of their shared tasks. Experts, who agree because they are right, are not
    accused, and neither is a group that contradicts all others: either side may be right. Members
    are called copies if their own fitted matrices do not explain their agreement either; otherwise
    the finding says that they may all be good.

    Parameters
    ----------
    labels : CrowdLabels
    found : Dependence, optional
        The tested pairs of these labels, if they are known.
    fit : fitted method, optional
        A fit with a label law, for the members' own matrices; by default one of the default method
        if there are groups.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(
    ...     300, 9 * simulate.OneCoinWorkers(8, 3) + 3 * simulate.Copiers(0.98, sources=0),
    ...     simulate.Dense(),
    ... )
    >>> find_clones(crowd.labels).groups
    [array([ 0,  9, 10, 11])]
    """
    found = compared(labels, "Copies", found)
    linked = linked_groups(found, labels.n_workers)
    pair = np.flatnonzero(
        (linked[found.first] >= 0) & (linked[found.first] == linked[found.second])
    )
    agreement, expected = (
        by_group(values[pair], linked[found.first[pair]], int(linked.max()) + 1)
        for values in (found.agreement, found.expected)
    )
    copies = np.array(
        [
            g for g in np.flatnonzero(agreement >= LEAST_AGREEMENT)
            if not _contradicts(labels, linked == g)
        ], dtype=np.intp,
    )  # fmt: skip
    number = np.full(len(agreement) + 1, -1, dtype=np.int32)
    number[copies] = np.arange(len(copies))
    group = number[linked]
    surprising = surprising_pairs(found, labels.workers, linked)
    own_z = unexplained_z(labels, group, fit)
    return Clones(labels.workers, group, agreement[copies], expected[copies], own_z, surprising)


def by_group(values: Floats, group: Codes, n_groups: int) -> Floats:
    """Return the mean (n_groups,) of values of pairs by their group."""
    n = np.maximum(np.bincount(group, minlength=n_groups), 1)
    return np.asarray(np.bincount(group, values, n_groups) / n)


def _contradicts(labels: CrowdLabels, members: NDArray[np.bool_]) -> bool:
    """Return whether the labels of all others agree with these workers less than by chance."""
    inside = members[labels.worker]
    K = labels.n_classes
    cell = labels.task.astype(np.int64) * K + labels.label
    place, row = np.unique(cell, return_inverse=True)
    votes = np.bincount(row.ravel(), ~inside, len(place))
    others = np.bincount(labels.task, ~inside, labels.n_tasks)[labels.task[inside]]
    equal = votes[row.ravel()[inside]]
    n_tasks = len(np.unique(labels.task[inside]))
    share = float(equal.sum() / max(others.sum(), 1))
    return bool(others.sum() > 0 and share < 1 / K - MARGIN * 0.5 / np.sqrt(n_tasks))


def collapse_clones(labels: Any, clones: Clones | None = None) -> Pruned:
    """Merge each group of copies into one worker with the id of its first member.

    The label of a task is that of most members; in a tie it is that of the first member.

    Parameters
    ----------
    labels : CrowdLabels or data of any accepted form
    clones : Clones, optional
        Groups in these labels; by default the result of :func:`find_clones`.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(
    ...     300, 9 * simulate.OneCoinWorkers(8, 3) + 3 * simulate.Copiers(sources=0),
    ...     simulate.Dense(),
    ... )
    >>> collapse_clones(crowd.labels).removed
    array([ 9, 10, 11])
    """
    crowd = as_crowd_labels(labels)
    merged, gone = merged_clones(crowd, find_clones(crowd) if clones is None else clones)
    rest = without_workers(merged, gone)
    return Pruned(rest, crowd.workers[gone], crowd.workers[:0], changes_between(crowd, rest))


def merged_clones(crowd: CrowdLabels, clones: Clones) -> tuple[CrowdLabels, NDArray[np.bool_]]:
    """Return labels with one worker for each group, and who has none left (n_workers,).

    All vocabularies stay.
    """
    group = clones.group
    leader = np.arange(crowd.n_workers, dtype=np.int32)
    for g in range(int(group.max(initial=-1)) + 1):
        leader[group == g] = np.flatnonzero(group == g)[0]
    rows = _one_row_each(crowd, leader, group >= 0)
    rows = rows[np.lexsort((leader[crowd.worker[rows]], crowd.task[rows]))]
    merged = crowd._rows(rows)
    merged = replace(merged, worker=leader[crowd.worker[rows]])
    return merged, leader != np.arange(crowd.n_workers)


def _one_row_each(
    labels: CrowdLabels, leader: Codes, in_group: NDArray[np.bool_]
) -> NDArray[np.intp]:
    """Return the annotations to keep: one per group and task, with the label of most members."""
    copied = in_group[labels.worker]
    rows = np.flatnonzero(copied)
    pair = labels.task[rows].astype(np.int64) * labels.n_workers + leader[labels.worker[rows]]
    said, first, times = np.unique(
        pair * labels.n_classes + labels.label[rows], return_index=True, return_counts=True
    )
    order = np.lexsort((first, -times, said // labels.n_classes))
    chosen = order[np.unique((said // labels.n_classes)[order], return_index=True)[1]]
    return np.concatenate([np.flatnonzero(~copied), rows[first[chosen]]])


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
    confirm each other. See :func:`wisecrowd.kinds.classes.families.worker_groups.compare_workers`.

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


@dataclass(frozen=True, eq=False)
class ModelCrowd(Part):
    """Whether all workers are language models.

    Attributes
    ----------
    workers : (n_workers,) ids
    only_models : bool
    has_gold : bool
        Whether known classes were given, which measure what the labels are worth.
    """

    workers: NDArray[Any]
    only_models: bool
    has_gold: bool

    def findings(self) -> list[Finding]:
        """Return what a crowd of models means, unless classes are known."""
        if not self.only_models or self.has_gold:
            return []
        return [
            Finding(
                "model-workers", "medium", 1.0, tuple(self.workers.tolist()),
                f"All {len(self.workers)} workers are language models "
                f"({describe_ids(self.workers)}), whose errors depend on each other: in published "
                "sets six of them counted as 1.6 to 3 independent workers. In six published sets "
                "labelled by language models only, the share right was 6 to 44 points lower than "
                "the confidence.",
                "Let a person answer about 60 tasks: " + check_remedy(),
            )
        ]  # fmt: skip


def find_model_crowd(labels: CrowdLabels, *, gold: Any = None) -> ModelCrowd:
    """Find out whether all workers are language models, by their kind or their names.

    Parameters
    ----------
    labels : CrowdLabels
    gold : known classes, optional
        With them, nothing is to be said.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays([1, 1, 2, 2], ["gpt-4o", "llama-3"] * 2, list("abab"))
    >>> [found.id for found in find_model_crowd(labels).findings()]
    ['model-workers']
    """
    return ModelCrowd(labels.workers, only_models(labels), gold is not None)
