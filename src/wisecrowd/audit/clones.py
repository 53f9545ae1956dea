"""Copies: workers with nearly the same labels, whose agreement skill does not explain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.audit.pruning import Pruned, changes_between, without_workers
from wisecrowd.checks.identical_workers import (
    CHANCE,
    LEAST_LABELS,
    best_accuracy,
    log_chance,
)
from wisecrowd.core.findings import Finding
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.validation import as_crowd_labels
from wisecrowd.core.votes import vote_table
from wisecrowd.families.moments.pair_moments import PairMoments, pair_moments

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

COPYING = 0.95  # agreement of copies, with occasional slips
LEAST_AGREEMENT = 0.9  # with less agreement, workers are similar but not copies
LEAST_SHARED = 5
MOST_PAIRS = 2_000_000
MOST_VOTES = 50_000_000  # maximum size of a table of votes
SUSPECT = 3.0  # minimum log-likelihood ratio for a pair to be in one group


@dataclass(frozen=True, eq=False)
class Clones(Part):
    """Groups of workers who copy each other's labels.

    Attributes
    ----------
    workers : (n_workers,) ids
    group : (n_workers,)
        Index of the group of copies, -1 for none.
    agreement : (n_groups,)
        Share of equal labels over disjoint pairs of members per task.
    n_comparisons : (n_groups,)
    best_accuracy : (n_groups,)
        Upper limit of the members' accuracy, from their agreement with all other workers.
    log_chance : (n_groups,)
        Upper limit of the log-probability of such agreement in any group of a crowd of this size.
    """

    workers: NDArray[Any]
    group: Codes
    agreement: Floats
    n_comparisons: Floats
    best_accuracy: Floats
    log_chance: Floats

    @property
    def groups(self) -> list[NDArray[Any]]:
        """Ids of the workers of each group."""
        return [self.workers[self.group == g] for g in range(len(self.agreement))]

    def tables(self) -> dict[str, Table]:
        """Return the table of workers in groups."""
        inside = np.flatnonzero(self.group >= 0)
        return {"clones": {"worker": self.workers[inside], "group": self.group[inside]}}

    def findings(self) -> list[Finding]:
        """Return one finding for each group."""
        return [
            Finding(
                "clones", "high", float(self.agreement[g]), tuple(ids.tolist()),
                f"{len(ids)} workers ({describe_ids(ids)}) give equal labels on "
                f"{self.agreement[g]:.0%} of the tasks that two of them share; by their agreement "
                f"with the others they are right in {self.best_accuracy[g]:.0%} at best, and "
                "copies then. The score is the share of equal labels.",
                "Count each group once: "
                + for_reader("wisecrowd.audit.collapse_clones.",
                             "--prune clones --prune-to CLEAN.csv."),
            )
            for g, ids in enumerate(self.groups)
        ]  # fmt: skip


def find_clones(labels: CrowdLabels) -> Clones:
    r"""Find groups of workers who copy the same labels, completely or in part, with slips.

    Average linkage merges pairs that agree like copies rather than like the average pair. The
    members' agreement with all other workers limits their accuracy to some a. Two workers of that
    accuracy agree with probability :math:`a^2 + (1 - a)^2`. A group is accused if its members agree
    more than that, so experts, who agree because they are right, are not accused. The p-value is
    below 10⁻⁶ after correction for all possible groups.

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
    if labels.n_classes < 2:
        raise NotApplicable("Copies cannot be looked for: there is only one class.")
    if labels.n_tasks * labels.n_classes > MOST_VOTES:
        raise NotApplicable("Copies cannot be looked for: there are too many tasks and classes.")
    pairs = pair_moments(labels, min_shared=LEAST_SHARED, max_pairs=MOST_PAIRS)
    if pairs.n_pairs == 0:
        raise NotApplicable(
            f"Copies cannot be looked for: no two workers share {LEAST_SHARED} tasks."
        )
    votes, suspects = vote_table(labels), _alike(pairs)
    group = np.full(labels.n_workers, -1, dtype=np.int32)
    rows: list[_Verdict] = []
    while suspects:
        verdicts = [_judge(labels, votes, members) for members in suspects]
        guilty = [place for place, verdict in enumerate(verdicts) if verdict.guilty]
        if not guilty:
            break
        # Most similar groups first: next to colluders, even a large group of experts looks guilty.
        worst = max(guilty, key=lambda place: verdicts[place].agreement)
        members = suspects.pop(worst)
        group[members] = len(rows)
        rows.append(verdicts[worst])
        # Copies are excluded from the votes: compared with them, experts would look like copies.
        votes -= _votes_of(labels, members, votes.shape)
    return Clones(labels.workers, group, *np.array(rows, dtype=np.float64).reshape(-1, 4).T)


class _Verdict(NamedTuple):
    """Evidence against a set of workers."""

    agreement: float
    n_comparisons: float
    best_accuracy: float
    log_chance: float

    @property
    def guilty(self) -> bool:
        return self.agreement >= LEAST_AGREEMENT and self.log_chance < np.log(CHANCE)


def _alike(pairs: PairMoments) -> list[NDArray[np.intp]]:
    """Return sets of workers whose pairs agree like copies on average."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    usual = float(np.average(pairs.agreement, weights=pairs.n_shared))
    usual = min(max(usual, 0.5), LEAST_AGREEMENT)
    equal = pairs.agreement * pairs.n_shared
    ratio = equal * np.log(COPYING / usual)
    ratio += (pairs.n_shared - equal) * np.log((1 - COPYING) / (1 - usual))
    near = ratio > SUSPECT
    shape = (pairs.n_workers, pairs.n_workers)
    graph = coo_array((np.ones(near.sum()), (pairs.first[near], pairs.second[near])), shape=shape)
    _, part = connected_components(graph, directed=False)
    found = []
    for piece in np.flatnonzero(np.bincount(part) > 1):
        members = np.flatnonzero(part == piece)
        m = len(members)
        require_memory(16 * m * m, f"Comparing {m} workers", "audit without the part 'clones'")
        place = np.full(pairs.n_workers, -1)
        place[members] = np.arange(m)
        inside = (place[pairs.first] >= 0) & (place[pairs.second] >= 0)
        closeness = np.zeros((m, m))  # pairs without shared tasks are neither near nor far
        closeness[place[pairs.first[inside]], place[pairs.second[inside]]] = ratio[inside]
        largest = closeness.max()
        if m == 2:
            found.append(members)
            continue
        tree = linkage(largest - closeness[np.triu_indices(m, 1)], "average")
        cluster = fcluster(tree, largest - 1e-9, "distance")
        found += [members[cluster == c] for c in np.unique(cluster) if (cluster == c).sum() > 1]
    return found


def _rows_of(labels: CrowdLabels, members: NDArray[np.intp]) -> NDArray[np.intp]:
    inside = np.zeros(labels.n_workers, dtype=bool)
    inside[members] = True
    return np.flatnonzero(inside[labels.worker])


def _votes_of(labels: CrowdLabels, members: NDArray[np.intp], shape: tuple[int, ...]) -> Floats:
    """(n_tasks, n_classes): votes by these workers."""
    rows = _rows_of(labels, members)
    cell = labels.task[rows].astype(np.int64) * labels.n_classes + labels.label[rows]
    votes = np.bincount(cell, minlength=shape[0] * shape[1])
    return votes.reshape(shape).astype(np.float64)


def _judge(labels: CrowdLabels, votes: Floats, members: NDArray[np.intp]) -> _Verdict:
    """Compare the agreement of the members with the agreement that the other votes predict."""
    rows = _rows_of(labels, members)
    task, label = labels.task[rows], labels.label[rows]
    # Disjoint pairs of members per task, so that comparisons are independent.
    first = np.flatnonzero(np.append(True, task[1:] != task[:-1]))
    rank = np.arange(len(rows)) - np.repeat(first, np.diff(np.append(first, len(rows))))
    odd = np.flatnonzero(rank % 2 == 1)
    if len(odd) < LEAST_LABELS:
        return _Verdict(0.0, float(len(odd)), 1.0, 0.0)
    agreement = float(np.mean(label[odd] == label[odd - 1]))
    rest = votes - _votes_of(labels, members, votes.shape)
    best = best_accuracy(rest[task], label, len(first))
    choices = len(members) * np.log(labels.n_workers)
    log_p = log_chance(agreement, len(odd), best) + choices
    return _Verdict(agreement, float(len(odd)), best, log_p)


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
    group = (find_clones(crowd) if clones is None else clones).group
    leader = np.arange(crowd.n_workers, dtype=np.int32)
    for g in range(int(group.max(initial=-1)) + 1):
        leader[group == g] = np.flatnonzero(group == g)[0]
    rows = _one_row_each(crowd, leader, group >= 0)
    rows = rows[np.lexsort((leader[crowd.worker[rows]], crowd.task[rows]))]
    merged = crowd._rows(rows)
    merged = replace(merged, worker=leader[crowd.worker[rows]])
    gone = leader != np.arange(crowd.n_workers)
    rest = without_workers(merged, gone)
    return Pruned(rest, crowd.workers[gone], crowd.workers[:0], changes_between(crowd, rest))


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
