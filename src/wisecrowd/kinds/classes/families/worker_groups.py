r"""Groups of workers whose labels depend on each other given the class, specified or detected.

Workers of one group share a source: they copy, they discuss, or they are models of one kind. Their
labels count as one noisy opinion, not as many. Detection is based on
:mod:`wisecrowd.kinds.classes.families.dependence`: pairs that agree more than their skills explain
are linked, and a group is a set of workers with more than half of its pairs linked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.messages.descriptions import describe_value
from wisecrowd.core.parameter_checks import check_integer
from wisecrowd.core.types import Codes, Floats, Mask
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.copy_reference import Reference, reference
from wisecrowd.kinds.classes.families.copy_test import copy_test
from wisecrowd.kinds.classes.families.dependence import Dependence, dependence, surprise
from wisecrowd.kinds.classes.families.moments.pair_moments import pair_moments
from wisecrowd.kinds.classes.shards import Shard

LEVEL = 0.01  # false discovery rate of linked pairs
LEAST_EXCESS = 0.05  # least excess agreement of a group
MOST_PAIRS = 2_000_000
SUSPICIOUS = 2.5  # standard errors above typical agreement from which a pair is looked at
ROUNDS = 10
LEAD = 2.0  # standard errors
NEAR_COPY = 0.9  # agreement
NEAR = 0.2  # distance of the weakest linked pair; 1 is not linked
UNKNOWN = 0.5  # distance of workers who share too few tasks; also where the tree is cut


def least_shared(n_classes: int) -> int:
    """Return the minimum number of shared tasks of a pair that is compared."""
    return max(5, 2 * n_classes)


def compare_workers(
    labels: CrowdLabels,
    min_shared: float | None = None,
    *,
    trusted: Mask | None = None,
    level: float = LEVEL,
    least_excess: float = LEAST_EXCESS,
) -> Dependence:
    """Test all pairs that share at least ``min_shared`` tasks for dependence.

    Copies confirm each other, so the skills of suspects are estimated from the workers outside of
    their group (:mod:`wisecrowd.kinds.classes.families.copy_reference`). Testing
    (:mod:`wisecrowd.kinds.classes.families.copy_test`) changes the groups, until they remain the
    same. There are three starts: pairs that agree more than pairwise moments explain, near copies
    that agree more than their typical pairs, and all of these. A later start is preferred, unless
    an earlier one predicts the labels of the workers without suspicion significantly better, or the
    later one suspects the very workers whom the earlier one relies on: the moments know the
    majority.

    Parameters
    ----------
    labels : CrowdLabels
    min_shared : float, optional
    trusted : (n_workers,) bool, optional
        Workers who are no suspects.
    level, least_excess : float
        False discovery rate and minimum excess agreement of linked pairs.
    """
    least = least_shared(labels.n_classes) if min_shared is None else min_shared
    pairs = pair_moments(labels, min_shared=least, max_pairs=MOST_PAIRS)
    moments = dependence(pairs, trusted)
    if labels.n_classes < 2 or pairs.n_pairs == 0:
        return moments
    at_first_sight = surprise(pairs)

    def groups_in(found: Dependence) -> Codes:
        groups = linked_groups(found, labels.n_workers, level=level, least_excess=least_excess)
        return groups if trusted is None else np.where(trusted, -1, groups).astype(np.int32)

    tested: dict[bytes, tuple[Dependence, Reference]] = {}  # by the groups that were left out

    def converged(groups: Codes) -> tuple[Dependence, Codes, Reference]:
        seen: set[bytes] = set()
        while len(seen) < ROUNDS and groups.tobytes() not in seen:
            key = groups.tobytes()
            seen.add(key)
            if key not in tested:
                inside = (groups[pairs.first] >= 0) & (groups[pairs.first] == groups[pairs.second])
                rest = reference(labels, groups)
                test = copy_test(rest, pairs, at_first_sight, inside)
                tested[key] = replace(moments, **test._asdict()), rest
            found, rest = tested[key]
            groups = groups_in(found)
        return found, groups, rest

    linked = moments.linked(level, least_excess)
    best = converged(groups_in(_marked(moments, moments.z, linked)))
    if trusted is not None and trusted.any():
        return best[0]  # typical pairs may be those of colluders
    active = np.unique([pairs.first, pairs.second])
    suspicious = at_first_sight > SUSPICIOUS
    strength = np.maximum(moments.z, at_first_sight)
    for near in (suspicious & (pairs.agreement >= NEAR_COPY), linked | suspicious):
        other = converged(groups_in(_marked(moments, strength, near)))
        if not _opposed(best[1][active], other[1][active]):
            alone = (best[1] < 0) & (other[1] < 0)
            best = best if _lead(best[2], other[2], alone) > LEAD else other
    return best[0]


def _marked(moments: Dependence, z: Floats, linked: Mask) -> Dependence:
    """Return a result in which exactly these pairs are linked."""
    p = np.where(linked, 0.0, 1.0)
    return replace(moments, agreement=1.0 - p, expected=np.zeros(len(p)), z=z, p=p, q=p)


def _opposed(one: Codes, other: Codes) -> bool:
    """Return whether two groupings exchange suspects and ungrouped workers, at least mostly.

    If a minority colludes, taking the colluders for the crowd explains the honest majority as one
    large group. Then hardly any worker is ungrouped in both, by whom the two could be compared.
    """
    alone, also_alone = one < 0, other < 0
    return bool(2 * (alone & also_alone).sum() <= min(alone.sum(), also_alone.sum()))


def _lead(one: Reference, other: Reference, workers: Mask) -> float:
    """Return how much better the first predicts these workers' labels, in standard errors."""
    data = one.annotations
    rows = np.flatnonzero(workers[data.worker])
    ahead = (one.log_predictions() - other.log_predictions())[rows]
    by_task = np.bincount(data.task[rows], data.weight[rows] * ahead, data.n_tasks)
    error = float(np.sqrt((by_task**2).sum()))
    return float(by_task.sum()) / error if error > 0 else 0.0


def check_groups(groups: Any) -> None:
    """Require "auto", a number of groups, or a group for each worker."""
    if isinstance(groups, Integral):
        check_integer("groups", groups, 1)
        return
    try:
        named = list(set(groups.values())) if isinstance(groups, Mapping) else groups
    except TypeError:  # an unhashable group, such as a list
        named = None
    if isinstance(named, str) and named == "auto":
        return
    if isinstance(named, str) or not hasattr(named, "__len__"):
        raise ParameterError(
            f"groups is {describe_value(groups)}; give 'auto', a number of groups, or the group of "
            "each worker as a mapping or an array."
        )


def groups_of(groups: Any, labels: CrowdLabels) -> Codes:
    """Return the group (n_workers,) of every worker, -1 for ungrouped workers.

    Groups of at least two are numbered in the order of their first workers.

    Parameters
    ----------
    groups : "auto", int, mapping or (n_workers,) array-like
        "auto" finds groups; an integer is the number of groups; a mapping gives groups by worker id
        (missing workers are ungrouped); an array gives the groups of all workers in order.
    labels : CrowdLabels

    Examples
    --------
    >>> labels = CrowdLabels.from_matrix([[0, 1, 0], [1, 1, 1]], workers=["ann", "bob", "cyd"])
    >>> groups_of({"ann": "home", "cyd": "home"}, labels)
    array([ 0, -1,  0], dtype=int32)
    """
    check_groups(groups)
    if isinstance(groups, str):
        return linked_groups(compare_workers(labels), labels.n_workers)
    if isinstance(groups, Integral):
        return nearest_groups(compare_workers(labels), labels, int(groups))
    if isinstance(groups, Mapping):
        return _from_mapping(groups, labels)
    try:
        given = np.asarray(groups)
        codes = np.unique(given, return_inverse=True)[1]
    except (TypeError, ValueError):
        given, codes = np.empty(0), np.empty(0, dtype=np.intp)
    if given.shape != (labels.n_workers,):
        raise ParameterError(
            f"groups must name the group of each of the {labels.n_workers} workers, in their "
            "order; a mapping from worker to group may leave workers out."
        )
    return _numbered(codes.ravel())


def _from_mapping(groups: Mapping[Any, Any], labels: CrowdLabels) -> Codes:
    workers = labels.workers.tolist()
    place = {worker: j for j, worker in enumerate(workers)}
    codes = np.arange(labels.n_workers)
    leader: dict[Any, int] = {}
    for worker, group in groups.items():
        if worker not in place:
            raise ParameterError(
                f"groups names the worker {worker!r}, who has no label; give ids as in the data."
            )
        codes[place[worker]] = leader.setdefault(group, place[worker])
    return _numbered(codes)


def _numbered(codes: NDArray[Any]) -> Codes:
    """Return group numbers, in the order of first workers; -1 for groups of one."""
    _, first, inverse, size = np.unique(
        codes, return_index=True, return_inverse=True, return_counts=True
    )
    shared = np.flatnonzero(size > 1)
    rank = np.full(len(first), -1, dtype=np.int32)
    rank[shared[np.argsort(first[shared])]] = np.arange(len(shared), dtype=np.int32)
    return rank[inverse.ravel()]


# ------------------------------------------------------------------------------------- found groups


def linked_groups(
    found: Dependence,
    n_workers: int,
    *,
    level: float = LEVEL,
    least_excess: float = LEAST_EXCESS,
) -> Codes:
    """Return the groups (n_workers,) of linked workers; all others are ungrouped.

    Two workers form a group only if their pair is significant among all pairs (Bonferroni):
    otherwise one chance pair among thousands would accuse two people. In larger groups more than
    half of the pairs are linked, which does not happen by chance.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    linked = found.linked(level, least_excess)
    first, second = found.first[linked], found.second[linked]
    graph = coo_array((np.ones(len(first)), (first, second)), shape=(n_workers, n_workers))
    _, part = connected_components(graph, directed=False)
    codes = np.arange(n_workers)
    sizes = np.bincount(part, minlength=1)
    for piece in np.flatnonzero(sizes > 1):
        members = np.flatnonzero(part == piece)
        codes[members] = members[_split(found, linked, members)]
    lone = _lone_pairs(found, linked, codes, level)
    codes[lone] = lone
    return _numbered(codes)


def _split(found: Dependence, linked: Mask, members: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the cluster of each member, named by its first: average linkage, cut at one half."""
    from scipy.cluster.hierarchy import fcluster, linkage

    m = len(members)
    if m == 2:
        return np.zeros(2, dtype=np.intp)
    require_memory(8 * m * m, f"Grouping {m} linked workers", "give the groups")
    place = np.full(int(found.second.max()) + 1, -1)
    place[members] = np.arange(m)
    inside = (place[found.first] >= 0) & (place[found.second] >= 0)
    apart = np.full((m, m), UNKNOWN)
    z = found.z[inside]
    # Linked pairs are near, stronger links nearer, so that a chance link is never merged first.
    near = NEAR * (1 - z / max(z.max(), 1e-300))
    rows, columns = place[found.first[inside]], place[found.second[inside]]
    apart[rows, columns] = np.where(linked[inside], near, 1.0)
    tree = linkage(apart[np.triu_indices(m, 1)], "average")
    cluster = fcluster(tree, UNKNOWN - 1e-9, "distance")
    return np.unique(cluster, return_index=True)[1][np.unique(cluster, return_inverse=True)[1]]


def _lone_pairs(
    found: Dependence, linked: Mask, codes: NDArray[np.intp], level: float
) -> NDArray[np.intp]:
    """Return the workers of groups of two whose pair is not significant among all pairs."""
    together = linked & (codes[found.first] == codes[found.second])
    sizes = np.bincount(codes, minlength=len(codes))
    weak = together & (sizes[codes[found.first]] == 2) & (found.p * len(found.p) > level)
    return np.union1d(found.first[weak], found.second[weak]).astype(np.intp)


def nearest_groups(found: Dependence, labels: CrowdLabels, n_groups: int) -> Codes:
    """Return exactly ``n_groups`` groups (n_workers,), if there are enough workers.

    Average linkage of the standardised excess: workers who agree most beyond their skills are
    merged first, significantly or not. Workers without labels are ungrouped.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    active = np.flatnonzero(labels.labels_per_worker > 0)
    m, codes = len(active), np.arange(labels.n_workers)
    if m <= n_groups:
        return _numbered(codes)
    require_memory(16 * m * m, f"Grouping {m} workers", "give the groups")
    place = np.full(labels.n_workers, -1)
    place[active] = np.arange(m)
    near = np.zeros((m, m))
    near[place[found.first], place[found.second]] = found.z
    tree = linkage(near.max() - near[np.triu_indices(m, 1)], "average")
    cluster = fcluster(tree, n_groups, "maxclust")
    first = np.unique(cluster, return_index=True)[1]
    codes[active] = active[first[cluster - 1]]
    return _numbered(codes)


# ---------------------------------------------------------------------- opinions of groups on tasks


@dataclass(frozen=True, eq=False)
class Opinions:
    """The distinct (task, group) pairs of a shard of tasks, sorted by task: one opinion each.

    An ungrouped worker is a group of one.

    Attributes
    ----------
    n_tasks : int
    task : (n_opinions,)
        Task within the shard.
    group : (n_opinions,)
        Group, or -1 for an ungrouped worker.
    of_annotation : (n_annotations,)
        The opinion that each annotation of the shard belongs to.
    votes : (n_opinions, n_classes)
        Weight of each label within each opinion.
    """

    n_tasks: int
    task: NDArray[np.int64]
    group: NDArray[np.int64]
    of_annotation: NDArray[np.int64]
    votes: Floats

    @classmethod
    def of(cls, shard: Shard, groups: Codes, n_classes: int) -> Opinions:
        """Collect the opinions of a shard; ``groups`` (n_workers,) has -1 for ungrouped workers."""
        worker = shard.worker.astype(np.int64)
        task = np.repeat(np.arange(shard.n_tasks), np.diff(shard.indptr))
        n_groups = int(groups.max(initial=-1)) + 1
        code = np.where(groups[worker] >= 0, groups[worker], n_groups + worker)
        n_codes = n_groups + len(groups)
        keys, inverse = np.unique(task * n_codes + code, return_inverse=True)
        inverse, group = inverse.ravel(), keys % n_codes
        votes = np.bincount(inverse * n_classes + shard.label, shard.weight, len(keys) * n_classes)
        return cls(
            shard.n_tasks,
            keys // n_codes,
            np.where(group < n_groups, group, -1),
            inverse,
            votes.reshape(len(keys), n_classes).astype(np.float64),
        )

    @cached_property
    def shared(self) -> NDArray[np.intp]:
        """Rows of the opinions of groups, without those of zero weight."""
        return np.flatnonzero((self.group >= 0) & (self.votes.sum(axis=1) > 0))

    def by_task(self, values: Floats) -> Floats:
        """Sum values (n_opinions, K) by task."""
        K = values.shape[1]
        columns = [np.bincount(self.task, values[:, k], self.n_tasks) for k in range(K)]
        return np.stack(columns, axis=1)

    def fused_votes(self, *, hard: bool) -> Floats:
        """Return the votes (n_tasks, K): one per group, and one per label of ungrouped workers.

        With ``hard``, a group votes for its most frequent label (ties are shared); otherwise its
        vote is divided like its labels.
        """
        votes = self.votes.copy()
        inside = votes[self.shared]
        if hard:
            inside = (inside >= inside.max(axis=1, keepdims=True) - 1e-9).astype(np.float64)
        votes[self.shared] = inside / inside.sum(axis=1, keepdims=True)
        return self.by_task(votes)
