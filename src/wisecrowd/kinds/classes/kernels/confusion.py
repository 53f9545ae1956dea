r"""One pass with confusion matrices, in NumPy: the specification, also for small problems.

Shared conventions: a block of ``n`` tasks has its annotations in rows ``indptr[0]`` to
``indptr[n]`` of the annotation arrays. ``cell = worker * K + label`` names a column of all
confusion matrices. Tables over cells are ``(J * K, K)``, with the true class last, so that one
annotation touches one contiguous row. A ``weight`` of None means that every annotation counts once.

The prior of task ``i`` is ``log_class + prior_rows[prior_index[i]]`` (row 0 for all tasks if
``prior_index`` is None). It contains class prior, gold labels and a classifier's output.

Tasks without annotations get their prior as posterior and do not count in any statistic.
"""

from __future__ import annotations

import numpy as np

from wisecrowd.core.types import Floats, Ints


def confusion_step(
    indptr: Ints,
    cell: Ints,
    weight: Floats | None,
    table: Floats,
    log_class: Floats,
    prior_rows: Floats,
    prior_index: Ints | None,
    counts: Floats | None,
    mass: Floats | None,
    probas: Floats | None,
    hard: bool,
) -> float:
    r"""Run the E-step and compute the expected counts of the M-step, in one pass over a block.

    .. math::
        \log q_i(k) = \log\pi_k + \log h_i(k) + \sum_{e \in i} w_e \log\theta[\text{cell}_e, k]
        - \log Z_i, \qquad
        \text{counts}[c, k] \mathrel{+}= \sum_{e: \text{cell}_e = c} w_e q_{i(e)}(k)

    Adds to ``counts`` (J·K, K) and ``mass`` (K,) and fills ``probas`` (n, K), each unless it is
    None; returns :math:`\sum_i \log Z_i`. With ``hard`` the posterior is its argmax (ties shared)
    and the log of its joint probability is returned instead.
    """
    rows, n = slice(indptr[0], indptr[-1]), len(indptr) - 1
    task = np.repeat(np.arange(n), np.diff(indptr))
    cells, w = cell[rows], None if weight is None else weight[rows]
    scores = np.empty((n, table.shape[1]))
    for k in range(table.shape[1]):
        values = table[cells, k] if w is None else w * table[cells, k]
        scores[:, k] = np.bincount(task, values, n)
    scores += log_class + (prior_rows[0] if prior_index is None else prior_rows[prior_index])
    top = scores.max(axis=1)
    if hard:
        best = scores >= top[:, None] - 1e-9
        q, log_z = best / best.sum(axis=1, keepdims=True), top
    else:
        q = np.exp(scores - top[:, None])
        total = q.sum(axis=1)
        q, log_z = q / total[:, None], top + np.log(total)
    if probas is not None:
        probas[:] = q
    labelled = np.diff(indptr) > 0
    if counts is not None and mass is not None:
        mass += q[labelled].sum(axis=0)
        add_counts(indptr, cell, weight, q, counts)
    return float(log_z[labelled].sum())


def add_counts(
    indptr: Ints, cell: Ints, weight: Floats | None, probas: Floats, counts: Floats
) -> None:
    """Add the expected counts of given posteriors (n, K) to ``counts`` (J·K, K)."""
    rows, task = slice(indptr[0], indptr[-1]), np.repeat(np.arange(len(probas)), np.diff(indptr))
    cells, w = cell[rows], None if weight is None else weight[rows]
    for k in range(counts.shape[1]):
        values = probas[task, k] if w is None else w * probas[task, k]
        counts[:, k] += np.bincount(cells, values, len(counts))


def add_vote_counts(
    indptr: Ints,
    label: Ints,
    cell: Ints,
    weight: Floats | None,
    counts: Floats,
    mass: Floats,
) -> None:
    """Add the counts (J·K, K) and class mass (K,) of the soft vote, EM's default start."""
    rows, n, K = slice(indptr[0], indptr[-1]), len(indptr) - 1, len(mass)
    index = np.repeat(np.arange(n), np.diff(indptr)) * K + label[rows]
    votes = np.bincount(index, None if weight is None else weight[rows], n * K).reshape(n, K)
    total = votes.sum(axis=1, keepdims=True)
    shares = votes / np.where(total > 0, total, 1)
    add_counts(indptr, cell, weight, shares, counts)
    mass += shares.sum(axis=0)
