r"""One sweep of the collapsed Gibbs sampler in NumPy: the specification, and what small crowds run.

Many chains run side by side: they are the last axis of every array, and share one visit of a task.

A label ``l`` by worker ``j`` on a task of class ``k`` is counted in one cell of a row: for
Dirichlet rows cell ``(j, l, k)`` of row ``(j, k)``, for coins cell ``(j, right or wrong)`` of row
``j``.
``counts`` (cells, C) and ``totals`` (rows, C) hold the labels of each chain *plus the prior's
parameters*, and ``class_counts`` (K, C) the tasks of each class plus those of the class prior.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

LONG_PRODUCT = 16  # labels whose probabilities are multiplied before their size is looked at


def cells(worker: Ints, label: Ints, n_classes: int, coin: bool) -> Ints:
    """Return (E, K): where an annotation is counted if its task is of class ``k``."""
    classes, j = np.arange(n_classes), worker.astype(np.intp)[:, None]
    if coin:
        return np.asarray(2 * j + (label[:, None] != classes))
    return np.asarray((j * n_classes + label[:, None]) * n_classes + classes)


def rows(worker: Ints, n_classes: int, coin: bool) -> Ints:
    """Return (E, K): the row that the cell belongs to."""
    if coin:
        return np.repeat(worker[:, None].astype(np.intp), n_classes, axis=1)
    return worker[:, None].astype(np.intp) * n_classes + np.arange(n_classes)


def gibbs_sweep(
    indptr: Ints,
    worker: Ints,
    label: Ints,
    weight: Floats | None,
    earlier: Floats | None,
    earlier_total: Floats | None,
    coin: bool,
    prior: Floats,
    prior_index: Ints | None,
    learn_class: bool,
    class_counts: Floats,
    counts: Floats,
    totals: Floats,
    state: NDArray[np.int32],
    uniform: Floats,
    probas: Floats | None,
) -> None:
    r"""Draw a new class for every task, one after the other, in all chains.

    .. math::
        p(z_i = k \mid rest) \propto h_i(k) \, n_k \prod_{e \in i}
        \frac{n_{cell(e, k)}}{n_{row(e, k)}}

    where the counts leave out the task itself. Changes ``state`` (N, C), ``class_counts`` if
    ``learn_class``, ``counts`` and ``totals``; adds the mean of the conditional probabilities over
    chains to ``probas`` (N, K) unless it is None. Tasks without annotations are left alone.

    With weights or several labels by one worker on one task, ``earlier`` (E, K) and
    ``earlier_total`` (E,) say what the worker's annotations before this one add to its cell and
    row, and ratios of gamma functions take the place of ratios of counts.
    """
    n_classes, n_chains = class_counts.shape
    at, row = cells(worker, label, n_classes, coin), rows(worker, n_classes, coin)
    wrong = (label[:, None] != np.arange(n_classes)) if coin else np.zeros((len(label), 1), bool)
    log_spread = wrong * -np.log(max(n_classes - 1, 1))
    simple = earlier is None or earlier_total is None
    chains = np.arange(n_chains)
    for i in np.flatnonzero(np.diff(indptr)):
        mine = slice(indptr[i], indptr[i + 1])
        a, r, own = at[mine], row[mine], state[i]
        w = None if weight is None else weight[mine, None]
        _move(a[:, own], r[:, own], chains, -1.0 if w is None else -w, simple, counts, totals)
        if learn_class:
            class_counts[own, chains] -= 1.0
        h = prior[0 if prior_index is None else prior_index[i]]
        if earlier is None or earlier_total is None:
            scores = _product(counts[a] / totals[r], log_spread[mine])
        else:
            w = np.ones((len(a), 1)) if w is None else w
            logs = _log_rising(counts[a] + earlier[mine, :, None], w)
            logs -= _log_rising(totals[r] + earlier_total[mine, None, None], w)
            scores = _relative(logs + (w * log_spread[mine])[:, :, None])
        scores *= class_counts
        scores *= h[:, None]
        new, share = _draw(scores, h, uniform[i])
        state[i] = new
        _move(a[:, new], r[:, new], chains, 1.0 if weight is None else w, simple, counts, totals)
        if learn_class:
            class_counts[new, chains] += 1.0
        if probas is not None:
            probas[i] += share.sum(axis=1) / n_chains


def _move(
    at: Ints, row: Ints, chains: Ints, weight: Any, simple: bool, counts: Floats, totals: Floats
) -> None:
    """Add a task's annotations to cells and rows (d, C), or with negative weights take them."""
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
    """Add logarithms (d, K, C) over annotations; the best class of each chain gets 1."""
    total = logs.sum(axis=0)
    return np.asarray(np.exp(total - total.max(axis=0)))


def _log_rising(start: Floats, weight: Floats) -> Floats:
    """Log of Γ(start + weight) / Γ(start), for (d, K, C) and (d, 1)."""
    from scipy.special import gammaln

    return np.asarray(gammaln(start + weight[:, :, None]) - gammaln(start))


def _draw(scores: Floats, h: Floats, uniform: Floats) -> tuple[Ints, Floats]:
    """Draw a class from scores (K, C) by uniform numbers (C,); returns it and the probabilities."""
    reached = scores.cumsum(axis=0)
    total = reached[-1]
    if not total.all():  # everything underflowed: the prior of the task is left
        scores = np.where(total > 0, scores, h[:, None])
        reached = scores.cumsum(axis=0)
        total = reached[-1]
    # How many classes end at or before the goal; where rounding says all, the last possible one.
    chosen = (reached <= uniform * total).sum(axis=0)
    if chosen.max() == len(h):
        last = len(h) - 1 - (scores[::-1] > 0).argmax(axis=0)
        chosen = np.where(chosen == len(h), last, chosen)
    return chosen, scores / total
