r"""The kernels of voting and one-coin models, in NumPy: the specification.

These models give a class that a task did not receive nothing but its prior, so their kernels work
on the distinct (task, label) pairs of a block, in order of task and label. ``pair`` (annotations of
the block,) names the pair of each annotation; the pairs of task ``i`` are ``pair_indptr[i]`` to
``pair_indptr[i + 1]``, and ``pair_label`` is their label. One pass is O(annotations) for any number
of classes.

The normalised log prior of a task is ``log_class + prior_rows[row] - row_total[row]``, with ``row``
its ``prior_index``, or 0 if that is None. A posterior is ``probas`` over the pairs and ``rest``
over the tasks: a class that was not received has ``rest`` times its prior.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.kernels.posteriors import annotations_of, sum_by

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

TIE = 1e-9  # probabilities closer than this are equal
NEARLY_ALL = 1e-4  # a remainder below this has lost digits to cancellation and is added up anew


def received_labels(
    indptr: Ints, label: Ints, n_classes: int
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Return (pair, pair_indptr, pair_task, pair_label): the distinct labels of each task."""
    rows, task = annotations_of(indptr)
    key = task * np.int64(n_classes) + label[rows]
    distinct, inverse = np.unique(key, return_inverse=True)
    pair_indptr = np.searchsorted(distinct, np.arange(len(indptr), dtype=np.int64) * n_classes)
    return (
        inverse.astype(np.int32),
        pair_indptr.astype(np.int64),
        (distinct // n_classes).astype(np.int32),
        (distinct % n_classes).astype(np.int32),
    )


def _pair_priors(
    pair_indptr: Ints,
    pair_task: Ints,
    pair_label: Ints,
    log_class: Floats,
    prior_rows: Floats,
    prior_index: Ints | None,
    row_total: Floats,
) -> tuple[Floats, Floats]:
    """Return the log prior of each pair, and each task's prior mass outside its pairs."""
    n, n_classes = len(pair_indptr) - 1, len(log_class)
    row = np.zeros(n, dtype=np.int64) if prior_index is None else prior_index
    of_pair = row[pair_task]
    log_prior = log_class[pair_label] + prior_rows[of_pair, pair_label] - row_total[of_pair]
    remainder = 1.0 - sum_by(pair_task, np.exp(log_prior), n)
    everything = np.diff(pair_indptr) == n_classes
    remainder[everything] = 0.0
    close = np.flatnonzero((remainder < NEARLY_ALL) & ~everything)
    for some, outside in _outside_priors(
        close, pair_indptr, pair_label, log_class, prior_rows, prior_index, row_total
    ):
        remainder[some] = outside.sum(axis=1)
    return log_prior, remainder


def _outside_priors(
    tasks: Ints,
    pair_indptr: Ints,
    pair_label: Ints,
    log_class: Floats,
    prior_rows: Floats,
    prior_index: Ints | None,
    row_total: Floats,
) -> Iterator[tuple[Ints, Floats]]:
    """Yield (some of the tasks, their priors (c, K) with the received classes at zero)."""
    size = max(1, (1 << 20) // len(log_class))
    for first in range(0, len(tasks), size):
        some = tasks[first : first + size]
        row = np.zeros(len(some), np.int64) if prior_index is None else prior_index[some]
        prior = np.exp(log_class + prior_rows[row] - row_total[row, None])
        counts = np.diff(pair_indptr)[some]
        local = np.repeat(np.arange(len(some)), counts)
        within = np.arange(len(local)) - np.repeat(np.cumsum(counts) - counts, counts)
        prior[local, pair_label[pair_indptr[some][local] + within]] = 0.0
        yield some, prior


def coin_step(
    indptr: Ints,
    worker: Ints,
    weight: Floats | None,
    pair: Ints,
    pair_indptr: Ints,
    pair_task: Ints,
    pair_label: Ints,
    log_odds: Floats,
    log_class: Floats,
    prior_rows: Floats,
    prior_index: Ints | None,
    row_total: Floats,
    correct: Floats,
    mass: Floats | None,
    probas: Floats,
    rest: Floats,
) -> float:
    r"""One E-step of a one-coin model, O(annotations) for any number of classes.

    .. math::
        q_i(k) = \frac{\pi_{ik} e^{s_{ik}}}{Z_i}, \qquad
        s_{ik} = \sum_{e \in i: y_e = k} w_e s_{j(e)}, \qquad
        Z_i = \sum_{k \text{ received}} \pi_{ik} e^{s_{ik}} + \sum_{k \text{ not}} \pi_{ik}

    ``log_odds`` (J,) is :math:`s_j = \log p_j - \log \frac{1 - p_j}{K - 1}`. Fills ``probas`` and
    ``rest``, adds the expected number of correct labels of each worker to ``correct`` (J,), does
    :func:`add_pair_mass` unless ``mass`` is None, and returns the sum of :math:`\log Z_i`, with the
    prior's ``row_total``, over the tasks that have annotations.
    """
    rows, _ = annotations_of(indptr)
    n = len(indptr) - 1
    log_prior, remainder = _pair_priors(
        pair_indptr, pair_task, pair_label, log_class, prior_rows, prior_index, row_total
    )
    w = 1.0 if weight is None else weight[rows]
    scores = log_prior + sum_by(pair, w * log_odds[worker[rows]], len(pair_label))
    top = np.where(remainder > 0, 0.0, -np.inf)
    np.maximum.at(top, pair_task, scores)
    likelihood = np.exp(scores - top[pair_task])
    base = np.where(remainder > 0, np.exp(-np.maximum(top, 0.0)), 0.0)
    z = base * remainder + sum_by(pair_task, likelihood, n)
    probas[:] = likelihood / z[pair_task]
    rest[:] = base / z
    correct += sum_by(worker[rows], w * probas[pair], len(correct))
    if mass is not None:
        add_pair_mass(
            indptr, pair_indptr, pair_task, pair_label, log_class, prior_rows, prior_index,
            row_total, probas, rest, mass,
        )  # fmt: skip
    log_z = top + np.log(z) + (row_total[0] if prior_index is None else row_total[prior_index])
    return float(log_z[np.diff(indptr) > 0].sum())


def add_pair_mass(
    indptr: Ints,
    pair_indptr: Ints,
    pair_task: Ints,
    pair_label: Ints,
    log_class: Floats,
    prior_rows: Floats,
    prior_index: Ints | None,
    row_total: Floats,
    probas: Floats,
    rest: Floats,
    mass: Floats,
) -> None:
    r"""Add :math:`q_i(k) - r_i \pi_{ik}` of each pair of an annotated task to ``mass`` (K,).

    With :math:`\sum_i r_i \pi_{ik}` over all classes added, which needs no loop over tasks where
    they share a prior, that is the expected number of tasks of each class.
    """
    log_prior, _ = _pair_priors(
        pair_indptr, pair_task, pair_label, log_class, prior_rows, prior_index, row_total
    )
    added = probas - rest[pair_task] * np.exp(log_prior)
    annotated = np.diff(indptr)[pair_task] > 0
    mass += sum_by(pair_label, np.where(annotated, added, 0.0), len(mass))


def vote_step(
    indptr: Ints,
    worker: Ints,
    weight: Floats | None,
    pair: Ints,
    pair_indptr: Ints,
    pair_task: Ints,
    pair_label: Ints,
    vote_weight: Floats,
    smoothing: float,
    log_class: Floats,
    prior_rows: Floats,
    prior_index: Ints | None,
    row_total: Floats,
    agreement: Floats,
    probas: Floats,
    rest: Floats,
    hard: bool,
) -> None:
    r"""Weighted votes of all tasks, times their priors, and how much each worker agrees with them.

    .. math::
        q_i(k) \propto \pi_{ik} (v_{ik} + f_i), \quad v_{ik} = \sum_{e \in i: y_e = k} w_e u_{j(e)},
        \quad f_i = \alpha - \min(0, \min_k v_{ik})

    with vote weights :math:`u` (J,) and smoothing :math:`\alpha`: negative votes move all classes
    of the task up until none is below zero. Where nothing remains the posterior is the prior. Adds
    to ``agreement`` (J,) the weight of each worker's labels times their posterior or, with
    ``hard``, their share in the best class: all of it, shared among ties, or nothing.
    """
    rows, _ = annotations_of(indptr)
    n = len(indptr) - 1
    log_prior, remainder = _pair_priors(
        pair_indptr, pair_task, pair_label, log_class, prior_rows, prior_index, row_total
    )
    w = 1.0 if weight is None else weight[rows]
    votes = sum_by(pair, w * vote_weight[worker[rows]], len(pair_label))
    floor = np.zeros(n)
    np.minimum.at(floor, pair_task, votes)
    floor = smoothing - floor
    prior = np.exp(log_prior)
    raised = (votes + floor[pair_task]) * prior
    z = sum_by(pair_task, raised, n) + floor * remainder
    nothing = ~(z > 0)
    z[nothing] = 1.0
    probas[:] = np.where(nothing[pair_task], prior, raised / z[pair_task])
    rest[:] = np.where(nothing, 1.0, floor / z)
    share = probas
    if hard:
        best = np.zeros(n)
        np.maximum.at(best, pair_task, probas)
        challenged = np.flatnonzero((rest > best) & (np.diff(pair_indptr) > 0))
        for some, outside in _outside_priors(
            challenged, pair_indptr, pair_label, log_class, prior_rows, prior_index, row_total
        ):
            beaten = rest[some] * outside.max(axis=1) > best[some] + TIE
            best[some[beaten]] = np.inf
        share = (probas >= best[pair_task] - TIE).astype(np.float64)
        share /= np.maximum(sum_by(pair_task, share, n), 1.0)[pair_task]
    agreement += sum_by(worker[rows], w * share[pair], len(agreement))
