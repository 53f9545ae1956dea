r"""The kernels of voting and one-coin models, in NumPy: the specification.

In these models a class that a task did not receive has only its prior, so the kernels work on the
distinct (task, label) pairs of a shard, in order of task and label. One pass is O(annotations) for
any number of classes. A posterior is ``probas`` over the pairs and ``rest`` over the tasks: a class
that was not received has ``rest`` times its prior.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels.arguments import TaskLabels
from wisecrowd.kinds.classes.kernels.posteriors import annotations_of, sum_by

TIE = 1e-9  # probabilities closer than this are equal
NEARLY_ALL = 1e-4  # a remainder below this suffers from cancellation and is summed again


class LabelPairs(NamedTuple):
    """The distinct (task, label) pairs of a shard.

    Attributes
    ----------
    pair : (n_annotations,)
        The pair of each annotation.
    indptr : (n_tasks + 1,)
        The pairs of task ``i`` are ``indptr[i]`` to ``indptr[i + 1]``, sorted by label.
    task, label : (n_pairs,)
        Tasks are counted within the shard.
    """

    pair: NDArray[np.int32]
    indptr: NDArray[np.int64]
    task: NDArray[np.int32]
    label: NDArray[np.int32]


class NormalisedPriors(NamedTuple):
    """Log priors of tasks that sum to one: ``log_class + rows[r] - totals[r]``, r = ``row_of[i]``.

    A ``row_of`` of None means row 0 for all tasks.
    """

    log_class: Floats
    rows: Floats
    row_of: Ints | None
    totals: Floats


class CoinOutput(NamedTuple):
    """Output of a one-coin step: increments correct (J,) and mass (K,), fills the posterior."""

    correct: Floats
    mass: Floats | None
    probas: Floats
    rest: Floats


class VoteOutput(NamedTuple):
    """Output of a vote: increments agreement (J,) and fills the posterior."""

    agreement: Floats
    probas: Floats
    rest: Floats


def received_labels(indptr: Ints, label: Ints, n_classes: int) -> LabelPairs:
    """Return the distinct labels of each task."""
    rows, task = annotations_of(indptr)
    key = task * np.int64(n_classes) + label[rows]
    distinct, inverse = np.unique(key, return_inverse=True)
    pair_indptr = np.searchsorted(distinct, np.arange(len(indptr), dtype=np.int64) * n_classes)
    return LabelPairs(
        inverse.astype(np.int32),
        pair_indptr.astype(np.int64),
        (distinct // n_classes).astype(np.int32),
        (distinct % n_classes).astype(np.int32),
    )


def _pair_priors(pairs: LabelPairs, priors: NormalisedPriors) -> tuple[Floats, Floats]:
    """Return the log prior of each pair, and each task's prior mass outside its pairs."""
    n, n_classes = len(pairs.indptr) - 1, len(priors.log_class)
    row = np.zeros(n, dtype=np.int64) if priors.row_of is None else priors.row_of
    of_pair = row[pairs.task]
    log_prior = (
        priors.log_class[pairs.label] + priors.rows[of_pair, pairs.label] - priors.totals[of_pair]
    )
    remainder = 1.0 - sum_by(pairs.task, np.exp(log_prior), n)
    everything = np.diff(pairs.indptr) == n_classes
    remainder[everything] = 0.0
    close = np.flatnonzero((remainder < NEARLY_ALL) & ~everything)
    for some, outside in _outside_priors(close, pairs, priors):
        remainder[some] = outside.sum(axis=1)
    return log_prior, remainder


def _outside_priors(
    tasks: Ints, pairs: LabelPairs, priors: NormalisedPriors
) -> Iterator[tuple[Ints, Floats]]:
    """Yield tasks in batches with their priors (c, K), received classes set to zero."""
    size = max(1, (1 << 20) // len(priors.log_class))
    for first in range(0, len(tasks), size):
        some = tasks[first : first + size]
        row = np.zeros(len(some), np.int64) if priors.row_of is None else priors.row_of[some]
        prior = np.exp(priors.log_class + priors.rows[row] - priors.totals[row, None])
        counts = np.diff(pairs.indptr)[some]
        local = np.repeat(np.arange(len(some)), counts)
        within = np.arange(len(local)) - np.repeat(np.cumsum(counts) - counts, counts)
        prior[local, pairs.label[pairs.indptr[some][local] + within]] = 0.0
        yield some, prior


def coin_step(
    labels: TaskLabels,
    pairs: LabelPairs,
    log_odds: Floats,
    priors: NormalisedPriors,
    output: CoinOutput,
) -> float:
    r"""Run one E-step of a one-coin model, O(annotations) for any number of classes.

    .. math::
        q_i(k) = \frac{\pi_{ik} e^{s_{ik}}}{Z_i}, \qquad
        s_{ik} = \sum_{e \in i: y_e = k} w_e s_{j(e)}, \qquad
        Z_i = \sum_{k \text{ received}} \pi_{ik} e^{s_{ik}} + \sum_{k \text{ not}} \pi_{ik}

    ``log_odds`` (J,) is :math:`s_j = \log p_j - \log \frac{1 - p_j}{K - 1}`. Fills ``probas`` and
    ``rest``, adds the expected number of correct labels of each worker to ``correct`` (J,), and
    calls :func:`add_pair_mass` unless ``mass`` is None. Returns the sum of :math:`\log Z_i`,
    including the prior's ``totals``, over the tasks that have annotations.
    """
    worker, weight, probas, rest = labels.worker, labels.weight, output.probas, output.rest
    n = len(labels.indptr) - 1
    log_prior, remainder = _pair_priors(pairs, priors)
    w = 1.0 if weight is None else weight
    scores = log_prior + sum_by(pairs.pair, w * log_odds[worker], len(pairs.label))
    top = np.where(remainder > 0, 0.0, -np.inf)
    np.maximum.at(top, pairs.task, scores)
    likelihood = np.exp(scores - top[pairs.task])
    base = np.where(remainder > 0, np.exp(-np.maximum(top, 0.0)), 0.0)
    z = base * remainder + sum_by(pairs.task, likelihood, n)
    probas[:] = likelihood / z[pairs.task]
    rest[:] = base / z
    output.correct[:] += sum_by(worker, w * probas[pairs.pair], len(output.correct))
    if output.mass is not None:
        add_pair_mass(labels.indptr, pairs, priors, probas, rest, output.mass)
    log_z = top + np.log(z) + priors.totals[0 if priors.row_of is None else priors.row_of]
    return float(log_z[np.diff(labels.indptr) > 0].sum())


def add_pair_mass(
    indptr: Ints,
    pairs: LabelPairs,
    priors: NormalisedPriors,
    probas: Floats,
    rest: Floats,
    mass: Floats,
) -> None:
    r"""Add :math:`q_i(k) - r_i \pi_{ik}` of each pair of an annotated task to ``mass`` (K,).

    Adding :math:`\sum_i r_i \pi_{ik}` over all classes gives the expected number of tasks of each
    class. That sum needs no loop over tasks if they share a prior.
    """
    log_prior, _ = _pair_priors(pairs, priors)
    added = probas - rest[pairs.task] * np.exp(log_prior)
    annotated = np.diff(indptr)[pairs.task] > 0
    mass += sum_by(pairs.label, np.where(annotated, added, 0.0), len(mass))


def vote_step(
    labels: TaskLabels,
    pairs: LabelPairs,
    vote_weight: Floats,
    priors: NormalisedPriors,
    output: VoteOutput,
    smoothing: float,
    hard: bool,
) -> None:
    r"""Compute weighted votes of all tasks, times their priors, and each worker's agreement.

    .. math::
        q_i(k) \propto \pi_{ik} (v_{ik} + f_i), \quad v_{ik} = \sum_{e \in i: y_e = k} w_e u_{j(e)},
        \quad f_i = \alpha - \min(0, \min_k v_{ik})

    with vote weights :math:`u` (J,) and smoothing :math:`\alpha`. Negative votes shift all classes
    of the task until none is negative. If all products are zero, the posterior is the prior. Adds
    to ``agreement`` (J,) the weight of each worker's labels times their posterior or, with
    ``hard``, times their share in the best class: all of it, shared among ties, or nothing.
    """
    worker, weight, probas, rest = labels.worker, labels.weight, output.probas, output.rest
    n = len(labels.indptr) - 1
    log_prior, remainder = _pair_priors(pairs, priors)
    w = 1.0 if weight is None else weight
    votes = sum_by(pairs.pair, w * vote_weight[worker], len(pairs.label))
    floor = np.zeros(n)
    np.minimum.at(floor, pairs.task, votes)
    floor = smoothing - floor
    prior = np.exp(log_prior)
    raised = (votes + floor[pairs.task]) * prior
    z = sum_by(pairs.task, raised, n) + floor * remainder
    nothing = ~(z > 0)
    z[nothing] = 1.0
    probas[:] = np.where(nothing[pairs.task], prior, raised / z[pairs.task])
    rest[:] = np.where(nothing, 1.0, floor / z)
    share = probas
    if hard:
        best = np.zeros(n)
        np.maximum.at(best, pairs.task, probas)
        challenged = np.flatnonzero((rest > best) & (np.diff(pairs.indptr) > 0))
        for some, outside in _outside_priors(challenged, pairs, priors):
            beaten = rest[some] * outside.max(axis=1) > best[some] + TIE
            best[some[beaten]] = np.inf
        share = (probas >= best[pairs.task] - TIE).astype(np.float64)
        share /= np.maximum(sum_by(pairs.task, share, n), 1.0)[pairs.task]
    output.agreement[:] += sum_by(worker, w * share[pairs.pair], len(output.agreement))
