r"""One sweep of the collapsed Gibbs sampler in NumPy: the specification, also for small crowds.

Many chains run in parallel: they are the last axis of every array, and share one visit of a task.

A label ``l`` by worker ``j`` on a task of class ``k`` is counted in one cell of a row: for
Dirichlet rows cell ``(j, l, k)`` of row ``(j, k)``, for coins cell ``(j, right or wrong)`` of row
``j``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels.arguments import TaskLabels

LONG_PRODUCT = 16  # labels whose probabilities are multiplied between rescalings


class TaskWeights(NamedTuple):
    """The prior probabilities of tasks up to a factor: ``rows[row_of[i]]``; None means row 0."""

    rows: Floats
    row_of: Ints | None


class EarlierLabels(NamedTuple):
    """Counts that a worker's earlier annotations of a task add to its cell (E, K) and row (E,)."""

    cell: Floats
    row: Floats


class ChainCounts(NamedTuple):
    """The class of each task in each chain, and the resulting counts; a sweep changes all.

    Attributes
    ----------
    class_counts : (K, C)
        Tasks of each class, plus the parameters of the class prior.
    counts, totals : (cells, C) and (rows, C)
        Labels of each chain, plus the parameters of the workers' prior.
    state : (N, C)
    """

    class_counts: Floats
    counts: Floats
    totals: Floats
    state: NDArray[np.int32]


def cells(worker: Ints, label: Ints, n_classes: int, coin: bool) -> Ints:
    """Return (E, K): the cell of an annotation if its task is of class ``k``."""
    classes, j = np.arange(n_classes), worker.astype(np.intp)[:, None]
    if coin:
        return np.asarray(2 * j + (label[:, None] != classes))
    return np.asarray((j * n_classes + label[:, None]) * n_classes + classes)


def rows(worker: Ints, n_classes: int, coin: bool) -> Ints:
    """Return (E, K): the row of the cell."""
    if coin:
        return np.repeat(worker[:, None].astype(np.intp), n_classes, axis=1)
    return worker[:, None].astype(np.intp) * n_classes + np.arange(n_classes)


def gibbs_sweep(
    labels: TaskLabels,
    earlier: EarlierLabels | None,
    prior: TaskWeights,
    chains: ChainCounts,
    uniform: Floats,
    probas: Floats | None,
    coin: bool,
    learn_class: bool,
) -> None:
    r"""Draw a new class for every task, in order, in all chains.

    .. math::
        p(z_i = k \mid rest) \propto h_i(k) \, n_k \prod_{e \in i}
        \frac{n_{cell(e, k)}}{n_{row(e, k)}}

    where the counts leave out the task itself. Changes the chains, but ``class_counts`` only if
    ``learn_class``. Adds the mean of the conditional probabilities over chains to ``probas`` (N, K)
    unless it is None. Tasks without annotations are not changed.

    ``earlier`` is given with weights or several labels by one worker on one task. Then ratios of
    gamma functions replace ratios of counts.
    """
    indptr, worker, label, weight = labels
    class_counts, counts, totals, state = chains
    n_classes, n_chains = class_counts.shape
    at, row = cells(worker, label, n_classes, coin), rows(worker, n_classes, coin)
    wrong = (label[:, None] != np.arange(n_classes)) if coin else np.zeros((len(label), 1), bool)
    log_spread = wrong * -np.log(max(n_classes - 1, 1))
    simple = earlier is None
    chain = np.arange(n_chains)
    for i in np.flatnonzero(np.diff(indptr)):
        mine = slice(indptr[i], indptr[i + 1])
        a, r, own = at[mine], row[mine], state[i]
        w = None if weight is None else weight[mine, None]
        _move(a[:, own], r[:, own], chain, -1.0 if w is None else -w, simple, counts, totals)
        if learn_class:
            class_counts[own, chain] -= 1.0
        h = prior.rows[0 if prior.row_of is None else prior.row_of[i]]
        if earlier is None:
            scores = _product(counts[a] / totals[r], log_spread[mine])
        else:
            w = np.ones((len(a), 1)) if w is None else w
            logs = _log_rising(counts[a] + earlier.cell[mine, :, None], w)
            logs -= _log_rising(totals[r] + earlier.row[mine, None, None], w)
            scores = _relative(logs + (w * log_spread[mine])[:, :, None])
        scores *= class_counts
        scores *= h[:, None]
        new, share = _draw(scores, h, uniform[i])
        state[i] = new
        _move(a[:, new], r[:, new], chain, 1.0 if weight is None else w, simple, counts, totals)
        if learn_class:
            class_counts[new, chain] += 1.0
        if probas is not None:
            probas[i] += share.sum(axis=1) / n_chains


def _move(
    at: Ints, row: Ints, chains: Ints, weight: Any, simple: bool, counts: Floats, totals: Floats
) -> None:
    """Add a task's annotations to cells and rows (d, C); negative weights subtract them."""
    if simple:  # no cell and no row occurs twice
        counts[at, chains] += weight
        totals[row, chains] += weight
    else:
        np.add.at(counts, (at, chains), weight)
        np.add.at(totals, (row, chains), weight)


def _product(odds: Floats, log_spread: Floats) -> Floats:
    """Multiply over annotations (d, K, C), up to a factor per chain if there are many."""
    if len(odds) > LONG_PRODUCT:
        return _relative(np.log(odds) + log_spread[:, :, None])
    scale = np.exp(log_spread.sum(axis=0))
    return np.asarray(odds.prod(axis=0) * scale[:, None])


def _relative(logs: Floats) -> Floats:
    """Sum logarithms (d, K, C) over annotations; the best class of each chain gets 1."""
    total = logs.sum(axis=0)
    return np.asarray(np.exp(total - total.max(axis=0)))


def _log_rising(start: Floats, weight: Floats) -> Floats:
    """Return the log of Γ(start + weight) / Γ(start), for (d, K, C) and (d, 1)."""
    from scipy.special import gammaln

    return np.asarray(gammaln(start + weight[:, :, None]) - gammaln(start))


def _draw(scores: Floats, h: Floats, uniform: Floats) -> tuple[Ints, Floats]:
    """Draw a class from scores (K, C) by uniform numbers (C,); return it and the probabilities."""
    reached = scores.cumsum(axis=0)
    total = reached[-1]
    if not total.all():  # everything underflowed: use the prior of the task
        scores = np.where(total > 0, scores, h[:, None])
        reached = scores.cumsum(axis=0)
        total = reached[-1]
    # Count the classes that end at or before the goal; if rounding gives all, take the last one.
    chosen = (reached <= uniform * total).sum(axis=0)
    if chosen.max() == len(h):
        last = len(h) - 1 - (scores[::-1] > 0).argmax(axis=0)
        chosen = np.where(chosen == len(h), last, chosen)
    return chosen, scores / total
