r"""Joint tables of the labels of two workers on the tasks that both labelled.

Labels of different workers are independent given the class, so the joint table of a pair is

.. math::
    R_{jj'}[l, l'] = P(y_{ij} = l, y_{ij'} = l') = \sum_k \pi_k \theta_{jkl} \theta_{j'kl'}

without any posterior: worker parameters can be estimated from such tables alone. Tables exist only
for pairs that share tasks, and only those are stored.

An annotation of weight ``w`` stands for ``w`` annotations: the weight of a shared task is the
product of the two weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels import kernels_for
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.kernels.posteriors import sum_by


@dataclass(frozen=True, eq=False)
class PairMoments:
    """Joint label counts of pairs of workers.

    Attributes
    ----------
    first, second : (n_pairs,) int32
        ``first < second``; sorted by (first, second).
    counts : (n_pairs, n_classes, n_classes)
        ``counts[p, l, l']``: weight of the shared tasks to which ``first[p]`` gave label ``l`` and
        ``second[p]`` label ``l'``. Population moments are counts of any total.
    n_shared : (n_pairs,)
        Weight of the shared tasks: the total of each table.
    marginals : (n_workers, n_classes)
        Share of each label among all labels of a worker; uniform for a worker without labels.
    findings : tuple of Finding
        Findings about omitted data, such as pairs beyond the budget.

    Examples
    --------
    >>> labels = CrowdLabels.from_matrix([[0, 0], [1, 1], [0, 1], [1, 1]])
    >>> pairs = pair_moments(labels)
    >>> pairs.counts[0]
    array([[1., 1.],
           [0., 2.]])
    >>> pairs.agreement
    array([0.75])
    """

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    counts: Floats
    n_shared: Floats
    n_workers: int
    n_classes: int
    marginals: Floats
    findings: tuple[Finding, ...] = ()

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.first)

    @cached_property
    def tables(self) -> Floats:
        """(n_pairs, K, K): each joint table, normalised to sum one."""
        return self.counts / self.n_shared[:, None, None]

    @cached_property
    def agreement(self) -> Floats:
        """(n_pairs,): share of equal labels on the shared tasks."""
        return np.asarray(np.trace(self.counts, axis1=1, axis2=2) / self.n_shared)

    @cached_property
    def covariance(self) -> Floats:
        r"""(n_pairs,): covariance of the one-hot labels on the shared tasks, summed over classes.

        :math:`\sum_l (R[l, l] - R[l, \cdot] R[\cdot, l])`: agreement beyond that of independent
        workers with the same label frequencies. Renaming classes does not change it.
        """
        rows, columns = self.tables.sum(axis=2), self.tables.sum(axis=1)
        return np.asarray(self.agreement - np.einsum("pl,pl->p", rows, columns))

    @cached_property
    def partners(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
        """Return all pairs from both sides: ``(indptr, partner, pair)``, sorted by worker.

        Those of worker ``j`` are ``indptr[j]`` to ``indptr[j + 1]``; ``pair`` is the row in
        ``first`` and ``second``.
        """
        own = np.concatenate([self.first, self.second])
        other = np.concatenate([self.second, self.first])
        order = np.lexsort((other, own))
        indptr = np.searchsorted(own[order], np.arange(self.n_workers + 1))
        return indptr, other[order], order % max(self.n_pairs, 1)

    def oriented(self, values: Floats) -> Floats:
        """Return (n_pairs, K, K) values in the order of ``partners``, with the own label first."""
        indptr, partner, pair = self.partners
        own = np.repeat(np.arange(self.n_workers), np.diff(indptr))
        turned = values[pair]
        swap = own > partner
        turned[swap] = turned[swap].transpose(0, 2, 1)
        return turned

    def block(self, j: int) -> tuple[NDArray[np.int32], Floats, Floats]:
        """Return the partners (n,), tables (n, K, K) [own label, partner's label] and n_shared."""
        indptr, partner, pair = self.partners
        rows = slice(indptr[j], indptr[j + 1])
        mine = self.tables[pair[rows]]
        swap = partner[rows] < j
        mine[swap] = mine[swap].transpose(0, 2, 1)
        return partner[rows], mine, self.n_shared[pair[rows]]

    def matrix(self, values: Floats) -> Any:
        """Return one value per pair as a sparse symmetric (n_workers, n_workers) CSR array."""
        from scipy.sparse import csr_array

        indptr, partner, pair = self.partners
        shape = (self.n_workers, self.n_workers)
        return csr_array((values[pair], partner, indptr), shape=shape)

    def sum_by_worker(self, of_first: Floats, of_second: Floats) -> Floats:
        """Sum values of pairs by their first and their second workers: (n_workers, ...)."""
        flat = (self.n_pairs, int(np.prod(of_first.shape[1:])))
        ends = self._ends
        total = ends[0] @ of_first.reshape(flat) + ends[1] @ of_second.reshape(flat)
        return np.asarray(total).reshape(self.n_workers, *of_first.shape[1:])

    @cached_property
    def _ends(self) -> tuple[Any, Any]:
        """Sparse (n_workers, n_pairs) matrices that sum by first and by second worker."""
        from scipy.sparse import csr_array

        place, one = np.arange(self.n_pairs), np.ones(self.n_pairs)
        shape = (self.n_workers, self.n_pairs)
        first, second = ((one, (end, place)) for end in (self.first, self.second))
        return csr_array(first, shape=shape), csr_array(second, shape=shape)

    def parts(self) -> tuple[NDArray[np.int32], int]:
        """Return the connected component of each worker, and the number of components."""
        from scipy.sparse.csgraph import connected_components

        n_parts, part = connected_components(self.matrix(self.n_shared), directed=False)
        return part, int(n_parts)

    def select(self, keep: NDArray[np.bool_]) -> PairMoments:
        """Return the pairs where ``keep`` (n_pairs,) is true; workers and classes are unchanged."""
        return PairMoments(
            self.first[keep], self.second[keep], self.counts[keep], self.n_shared[keep],
            self.n_workers, self.n_classes, self.marginals, self.findings,
        )  # fmt: skip


@singledispatch
def pair_moments(
    labels: Any,
    *,
    min_shared: float = 1,
    max_pairs: int | None = None,
    rng: np.random.Generator | None = None,
) -> PairMoments:
    """Return the joint label counts of all pairs of workers who share enough tasks.

    Parameters
    ----------
    labels : CrowdLabels
    min_shared : float
        Minimum weight of shared tasks; pairs that share less are left out.
    max_pairs : int, optional
        Maximum number of pairs. Beyond it, workers keep the partners with whom they share most
        tasks: first every worker's closest partner, then the second closest, until the budget is
        used. Ties are broken by ``rng``, or by order without it. A finding reports this.
    rng : Generator, optional

    Notes
    -----
    Time is that of visiting every pair of labels of every task twice. Memory is 16 bytes for each
    pair that shares a task, and a table for each pair that is kept.
    """
    check_number("min_shared", min_shared, 0.0)
    if max_pairs is not None:
        check_integer("max_pairs", max_pairs, 1)
    J, K = labels.n_workers, labels.n_classes
    task, worker, label, weight = counted_annotations(labels)
    per_task = np.bincount(task, minlength=1).astype(np.float64)
    at_most = min(float((per_task**2).sum()), float(J) ** 2) / 2
    kernel = kernels_for("pairs", max(len(task), int(at_most)))  # few labels may have many pairs
    require_tables(16 * at_most)
    first, second, shared = kernel.shared_weight(task, worker, weight, J, float(min_shared))
    (first, second, shared), left_out = selected_pairs(first, second, shared, max_pairs, rng)
    require_tables(8.0 * len(first) * K * K)
    counts = kernel.pair_counts(task, worker, label, weight, first, second, J, K)
    return PairMoments(first, second, counts, shared, J, K, label_shares(labels), left_out)


def selected_pairs(
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    shared: Floats,
    max_pairs: int | None,
    rng: np.random.Generator | None,
) -> tuple[tuple[NDArray[np.int32], NDArray[np.int32], Floats], tuple[Finding, ...]]:
    """Return at most ``max_pairs`` pairs, and a finding if there are more."""
    if max_pairs is None or len(first) <= max_pairs:
        return (first, second, shared), ()
    kept = closest_pairs(first, second, shared, max_pairs, rng)
    text = (
        f"{len(first)} pairs of workers share tasks; {max_pairs} of them are used: those that "
        "share most, in turn for every worker."
    )
    left_out = Finding("pairs-left-out", "medium", max_pairs / len(first), (), text, "")
    return (first[kept], second[kept], shared[kept]), (left_out,)


def population_moments(
    confusion: Floats, class_prior: Floats, *, n_shared: Floats | None = None
) -> PairMoments:
    """Return the pair moments of infinitely many tasks, for known workers.

    Parameters
    ----------
    confusion, class_prior : (n_workers, K, K), (K,)
    n_shared : (n_workers, n_workers), optional
        Symmetric weights of the pairs; pairs of weight 0 are left out. The default is 1 for all.

    Examples
    --------
    >>> coin = np.array([[[0.9, 0.1], [0.1, 0.9]]] * 2)
    >>> population_moments(coin, np.array([0.5, 0.5])).tables[0].round(2)
    array([[0.41, 0.09],
           [0.09, 0.41]])
    """
    J, K = confusion.shape[:2]
    weight = np.ones((J, J)) if n_shared is None else n_shared
    first, second = np.nonzero(np.triu(weight, 1) > 0)
    shared = np.asarray(weight[first, second], dtype=np.float64)
    tables = confusion[first].transpose(0, 2, 1) @ (class_prior[:, None] * confusion[second])
    return PairMoments(
        first.astype(np.int32), second.astype(np.int32), shared[:, None, None] * tables, shared,
        J, K, class_prior @ confusion,
    )  # fmt: skip


def require_tables(size: float) -> None:
    """Refuse tables of so many bytes if there is not enough memory."""
    require_memory(
        int(size),
        "The joint tables of workers who share tasks",
        "use one-coin or majority-vote, which need a few bytes per annotation",
    )


def closest_pairs(
    first: Ints,
    second: Ints,
    shared: Floats,
    max_pairs: int,
    rng: np.random.Generator | None = None,
) -> NDArray[np.intp]:
    """Return the rows of at most ``max_pairs`` pairs: every worker's closest, then second closest.

    A pair's position is the better one of its ranks among the pairs of its two workers.

    Examples
    --------
    >>> first, second = np.array([0, 0, 0, 1]), np.array([1, 2, 3, 2])
    >>> closest_pairs(first, second, np.array([9.0, 8.0, 1.0, 7.0]), 3)
    array([0, 1, 2])
    """
    n = len(first)
    lot = np.arange(n) if rng is None else rng.permutation(n)
    own = np.concatenate([first, second])
    pair = np.tile(np.arange(n), 2)
    order = np.lexsort((lot[pair], -shared[pair], own))
    rank = np.arange(2 * n) - np.searchsorted(own[order], own[order])
    turn = np.full(n, n)
    np.minimum.at(turn, pair[order], rank)
    return np.sort(np.lexsort((lot, -shared, turn))[:max_pairs])


def counted_annotations(labels: CrowdLabels) -> tuple[Ints, Ints, Ints, Floats]:
    """Return task, worker, label and weight of annotations of nonzero weight, by (task, worker)."""
    if labels.weight is None:
        return labels.task, labels.worker, labels.label, np.ones(labels.n_annotations)
    kept = np.flatnonzero(labels.weight > 0)
    return labels.task[kept], labels.worker[kept], labels.label[kept], labels.weight[kept]


@singledispatch
def agreed_classes(labels: Any) -> NDArray[np.bool_]:
    """Return whether two workers ever gave each class (K,) to the same task.

    Examples
    --------
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 2, 1], [2, 0, 0]])
    >>> agreed_classes(labels)
    array([ True,  True, False])
    """
    task, worker, label, _ = counted_annotations(labels)
    cell = task.astype(np.int64) * labels.n_classes + label
    order = np.lexsort((worker, cell))
    cell, worker = cell[order], worker[order]
    both = (cell[1:] == cell[:-1]) & (worker[1:] != worker[:-1])
    agreed = np.zeros(labels.n_classes, dtype=bool)
    agreed[cell[1:][both] % labels.n_classes] = True
    return agreed


def label_shares(labels: CrowdLabels) -> Floats:
    """Return the share (n_workers, K) of each label among a worker's labels; uniform if none."""
    J, K = labels.n_workers, labels.n_classes
    cell = labels.worker.astype(np.int64) * K + labels.label
    return share_of_labels(np.bincount(cell, labels.weight, J * K).reshape(J, K))


def share_of_labels(counts: NDArray[Any]) -> Floats:
    """Return counts (n_workers, K) as shares of each worker's labels; uniform if none."""
    K = counts.shape[1]
    total = counts.sum(axis=1, keepdims=True)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), 1 / K)


def with_gold_worker(labels: CrowdLabels, gold: Ints) -> CrowdLabels:
    """Return the labels with one more worker at the end, who gave the gold labels (-1: none)."""
    known = np.flatnonzero(gold >= 0)
    if not len(known):
        return labels
    task = np.concatenate([labels.task, known])
    order = np.argsort(task, kind="stable")
    weight = None
    if labels.weight is not None:
        weight = np.concatenate([labels.weight, np.ones(len(known))])[order]
    worker = np.concatenate([labels.worker, np.full(len(known), labels.n_workers)])
    label = np.concatenate([labels.label, gold[known]])
    return CrowdLabels(
        task[order].astype(np.int32),
        worker[order].astype(np.int32),
        label[order].astype(np.int32),
        labels.tasks,
        np.append(labels.workers.astype(object), [None]),
        labels.classes,
        weight=weight,
    )


def agreement_with_votes(labels: CrowdLabels, gold: Ints, times: Floats | None = None) -> Floats:
    """Return each worker's agreement with the plain vote, or gold, beyond chance.

    ``times`` (n_tasks,) is how often each task counts.
    """
    weight = labels.weights
    task, label, K = labels.task.astype(np.int64), labels.label, labels.n_classes
    key, entry = np.unique(task * K + label, return_inverse=True)
    votes = np.bincount(entry, weights=weight, minlength=len(key))[entry]
    total = np.bincount(task, weights=weight, minlength=labels.n_tasks)[task]
    share = np.divide(votes, total, out=np.full(len(task), 1 / K), where=total > 0)
    share = np.where(gold[task] >= 0, gold[task] == label, share)
    weight = weight if times is None else weight * times[task]
    return sum_by(labels.worker, weight * (share - 1 / K), labels.n_workers)
