r"""Joint tables of the labels of three workers on the tasks that all three labelled.

.. math::
    T_{jj'j''}[l, l', l''] = \sum_k \pi_k \theta_{jkl} \theta_{j'kl'} \theta_{j''kl''}

Pairs may not identify the parameters; triples of full-rank workers do. There can be as many triples
as workers cubed, so a budget limits their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.families.moments.pair_moments import counted_annotations

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

ROWS = 4_000_000  # annotations that are matched at once
DRAWS = 4  # triples drawn per triple of the budget


@dataclass(frozen=True, eq=False)
class TripleMoments:
    """Joint label counts of triples of workers.

    Attributes
    ----------
    workers : (n_triples, 3) int32
        Each row ascending; rows sorted.
    counts : (n_triples, n_classes, n_classes, n_classes)
        Weight of the shared tasks by the three labels, in the order of ``workers``.
    n_shared : (n_triples,)
        Weight of the shared tasks: the total of each table.
    findings : tuple of Finding
        Findings about omitted data.
    """

    workers: NDArray[np.int32]
    counts: Floats
    n_shared: Floats
    n_workers: int
    n_classes: int
    findings: tuple[Finding, ...] = ()

    @property
    def n_triples(self) -> int:
        """Number of triples."""
        return len(self.workers)

    @cached_property
    def tables(self) -> Floats:
        """(n_triples, K, K, K): each joint table, normalised to sum one."""
        return self.counts / self.n_shared[:, None, None, None]


def triple_moments(
    labels: CrowdLabels,
    *,
    min_shared: float = 1,
    max_triples: int = 20_000,
    rng: np.random.Generator | None = None,
) -> TripleMoments:
    """Return the joint label counts of triples of workers who share enough tasks.

    Parameters
    ----------
    labels : CrowdLabels
    min_shared : float
        Minimum weight of the tasks that all three labelled.
    max_triples : int
        Maximum number of triples. If there are no more combinations of three workers, all are
        counted. Otherwise each worker gets the same number of draws of one of its tasks and two
        others who labelled it; the drawn triples that share most tasks are kept. A finding reports
        this.
    rng : Generator, optional
        Generator for the draws; by default they are the same every time.

    Examples
    --------
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 1]])
    >>> triples = triple_moments(labels)
    >>> triples.workers.tolist(), triples.n_shared.tolist(), float(triples.counts[0, 0, 0, 1])
    ([[0, 1, 2]], [3.0], 2.0)
    """
    check_number("min_shared", min_shared, 0.0)
    check_integer("max_triples", max_triples, 1)
    J, K = labels.n_workers, labels.n_classes
    annotations = counted_annotations(labels)
    active = np.unique(annotations[1])
    left_out: tuple[Finding, ...] = ()
    if len(active) * (len(active) - 1) * (len(active) - 2) // 6 <= max_triples:
        workers = _all_triples(active)
    else:
        rng = np.random.default_rng(0) if rng is None else rng
        workers = _drawn_triples(annotations, J, DRAWS * max_triples, rng)
        text = "Triples of workers are drawn: there are too many to look at all of them."
        left_out = (Finding("triples-drawn", "medium", float(len(workers)), (), text, ""),)
    counts = _triple_counts(annotations, workers, labels.n_tasks, K)
    shared = counts.sum(axis=(1, 2, 3))
    kept = np.flatnonzero((shared > 0) & (shared >= min_shared))
    if len(kept) > max_triples:
        kept = np.sort(kept[np.argsort(-shared[kept], kind="stable")[:max_triples]])
    return TripleMoments(workers[kept], counts[kept], shared[kept], J, K, left_out)


def _all_triples(active: Ints) -> NDArray[np.int32]:
    """Return all triples of some workers, sorted."""
    n = len(active)
    a, b = np.triu_indices(n, 1)
    later = n - 1 - b
    pair = np.repeat(np.arange(len(a)), later)
    c = np.arange(later.sum()) - np.repeat(np.cumsum(later) - later, later) + b[pair] + 1
    return active[np.stack([a[pair], b[pair], c], axis=1)].astype(np.int32)


def _drawn_triples(
    annotations: tuple[Ints, Ints, Ints, Floats], n_workers: int, n_draws: int, rng: Any
) -> NDArray[np.int32]:
    """Return distinct random triples: each worker, and two others who did one of its tasks."""
    task, worker, *_ = annotations
    begin = np.searchsorted(task, task)
    size = np.searchsorted(task, task, side="right") - begin
    usable = np.flatnonzero(size >= 3)
    usable = usable[np.argsort(worker[usable], kind="stable")]
    if not len(usable):
        return np.empty((0, 3), dtype=np.int32)
    own, where, n_own = np.unique(worker[usable], return_index=True, return_counts=True)
    each = -(-n_draws // len(own))
    start, many = np.repeat(where, each), np.repeat(n_own, each)
    e = usable[start + (rng.random(len(start)) * many).astype(np.int64)]
    others = begin[e][:, None] + (rng.random((len(e), 2)) * size[e][:, None]).astype(np.int64)
    drawn = np.sort(np.column_stack([worker[e], worker[others]]), axis=1)
    distinct = (drawn[:, 0] < drawn[:, 1]) & (drawn[:, 1] < drawn[:, 2])
    return np.unique(drawn[distinct], axis=0).astype(np.int32)


def _triple_counts(
    annotations: tuple[Ints, Ints, Ints, Floats], workers: Ints, n_tasks: int, n_classes: int
) -> Floats:
    """Return the (T, K, K, K) counts by matching each triple's annotations on the same task."""
    task, worker, label, weight = annotations
    order = np.argsort(worker, kind="stable")
    key = worker[order].astype(np.int64) * n_tasks + task[order]  # sorted
    label, weight = label[order], weight[order]
    n_own = np.bincount(worker, minlength=int(workers.max(initial=0)) + 1)
    begin = np.cumsum(n_own) - n_own
    counts = np.zeros((len(workers), n_classes, n_classes, n_classes))
    rows = np.cumsum(n_own[workers[:, 0]]) if len(workers) else np.empty(0)
    chunk = (rows // ROWS).astype(np.int64)
    for part in np.split(np.arange(len(workers)), np.flatnonzero(np.diff(chunk)) + 1):
        a, b, c = workers[part].T
        triple, e = _ranges(begin[a], n_own[a])
        on_task = key[e] - a[triple].astype(np.int64) * n_tasks
        cell, product = label[e].astype(np.int64), weight[e]
        for other in (b, c):
            wanted = other[triple].astype(np.int64) * n_tasks + on_task
            left = np.searchsorted(key, wanted)
            row, f = _ranges(left, np.searchsorted(key, wanted, side="right") - left)
            triple, on_task = triple[row], on_task[row]
            cell = cell[row] * n_classes + label[f]
            product = product[row] * weight[f]
        flat = np.bincount(triple * n_classes**3 + cell, product, len(part) * n_classes**3)
        counts[part] = flat.reshape(len(part), n_classes, n_classes, n_classes)
    return counts


def _ranges(begin: Ints, size: Ints) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all rows of the ranges ``begin`` to ``begin + size``, as (range, row)."""
    owner = np.repeat(np.arange(len(begin), dtype=np.int64), size)
    offset = np.cumsum(size) - size
    row = np.arange(len(owner), dtype=np.int64) - offset[owner] + begin[owner]
    return owner, np.asarray(row, dtype=np.int64)
