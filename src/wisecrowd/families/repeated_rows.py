r"""Statistics of rows that stand for several tasks with the same labels.

A task's expected counts, its class mass and its log-likelihood count as often as it is repeated.
Annotation weights are not that: they sharpen the posterior. Posteriors come from the same kernels
as those of single tasks; sums over rows are weighted here, because such rows are few.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.engines.memory import Shard
from wisecrowd.families.sparse_posterior import SparsePosterior, posterior_rows, row_totals
from wisecrowd.kernels.arguments import TaskLabels
from wisecrowd.kernels.posteriors import annotations_of, sum_by
from wisecrowd.kernels.sparse_posterior.reference import CoinOutput, NormalisedPriors, VoteOutput

Floats = NDArray[np.float64]


def repeats_of(shard: Shard) -> Floats:
    """Return (n,) how often each row counts; rows without labels do not count."""
    assert shard.repeat is not None
    return np.where(shard.labelled, shard.repeat, 0.0)


def confusion_statistics(
    shard: Shard, table: Floats, log_class: Floats, hard: bool
) -> tuple[Floats, Floats, float]:
    r"""Return counts (J·K, K), class mass (K,) and log-likelihood of an E-step.

    The log normaliser of a row is its score minus its log-probability, at the best class.
    """
    probas = np.empty((shard.n_tasks, len(log_class)))
    shard.kernels("confusion").confusion_step(
        shard.indptr, shard.cell, shard.weight, table, log_class,
        shard.prior_rows, shard.prior_index, None, None, probas, hard,
    )  # fmt: skip
    counts, mass = posterior_counts(shard, probas, table.shape[0])
    best = probas.argmax(axis=1)
    _, task = annotations_of(shard.indptr)
    value = table[shard.cell, best[task]]
    row = 0 if shard.prior_index is None else shard.prior_index
    log_z = log_class[best] + shard.prior_rows[row, best]
    log_z += sum_by(task, value if shard.weight is None else shard.weight * value, len(best))
    if not hard:
        log_z -= np.log(probas[np.arange(len(best)), best])
    return counts, mass, float((repeats_of(shard) * log_z).sum())


def posterior_counts(shard: Shard, probas: Floats, n_cells: int) -> tuple[Floats, Floats]:
    """Return the counts (J·K, K) and the class mass (K,) of given posteriors (n, K)."""
    weighted = probas * repeats_of(shard)[:, None]
    counts = np.zeros((n_cells, probas.shape[1]))
    shard.kernels("confusion").add_counts(shard.indptr, shard.cell, shard.weight, weighted, counts)
    return counts, weighted.sum(axis=0)


def each_annotation(shard: Shard) -> TaskLabels:
    """Return the annotations with a worker of its own each, whose sum a kernel then returns."""
    own = np.arange(len(shard.label), dtype=np.int32)
    return TaskLabels(shard.indptr, own, shard.label, shard.weight)


def sum_over_workers(shard: Shard, values: Floats, n_workers: int) -> Floats:
    """Return the (J,) sums of a value per annotation, as often as its task is repeated."""
    _, task = annotations_of(shard.indptr)
    return sum_by(shard.worker, values * repeats_of(shard)[task], n_workers)


def coin_statistics(
    shard: Shard, state: SparsePosterior, log_odds: Floats, priors: NormalisedPriors
) -> tuple[Floats, Floats, float]:
    """Return correct labels (J,), class mass (K,) and sum of log normalisers of a one-coin step.

    ``log_odds`` (J,) is that of the workers. The posterior of ``state`` is filled.
    """
    of_annotation = log_odds[shard.worker]
    correct = np.zeros(len(of_annotation))
    shard.kernels("sparse_posterior").coin_step(
        each_annotation(shard), state.pairs, of_annotation, priors,
        CoinOutput(correct, None, state.probas, state.rest),
    )  # fmt: skip
    value = _coin_log_likelihood(shard, state, of_annotation, priors.log_class)
    mass = _mass(shard, state, priors)
    return sum_over_workers(shard, correct, len(log_odds)), mass, value


def vote_statistics(
    shard: Shard, state: SparsePosterior, n_workers: int, n_classes: int
) -> tuple[Floats, Floats]:
    """Return correct labels (J,) and class mass (K,) of the soft vote; fills the posterior."""
    correct, no_class = np.zeros(len(shard.label)), np.zeros(n_classes)
    totals = row_totals(shard.prior_rows, no_class)
    priors = NormalisedPriors(no_class, shard.prior_rows, shard.prior_index, totals)
    shard.kernels("sparse_posterior").vote_step(
        each_annotation(shard), state.pairs, np.ones_like(correct), priors,
        VoteOutput(correct, state.probas, state.rest), 0.0, False,
    )  # fmt: skip
    return sum_over_workers(shard, correct, n_workers), _mass(shard, state, priors)


def _mass(shard: Shard, state: SparsePosterior, priors: NormalisedPriors) -> Floats:
    rows = posterior_rows(shard, state, priors.log_class, priors.totals, None)
    mass: Floats = (rows * repeats_of(shard)[:, None]).sum(axis=0)
    return mass


def _coin_log_likelihood(
    shard: Shard, state: SparsePosterior, log_odds: Floats, log_class: Floats
) -> float:
    r"""Return the sum of the log normalisers of a one-coin step, from its posterior.

    ``log_odds`` is that of each annotation; ``state`` has the posterior over pairs.
    """
    n_pairs = len(state.label)
    value = log_odds if shard.weight is None else shard.weight * log_odds
    row = 0 if shard.prior_index is None else shard.prior_index[state.task]
    scores = log_class[state.label] + shard.prior_rows[row, state.label]
    scores += sum_by(state.pair, value, n_pairs)
    best = np.zeros(shard.n_tasks)
    np.maximum.at(best, state.task, state.probas)
    top = np.flatnonzero(state.probas >= best[state.task])[::-1]
    first = np.full(shard.n_tasks, -1)
    first[state.task[top]] = top  # the first of the best pairs of each task
    rows = np.flatnonzero(first >= 0)
    pair = first[rows]
    log_z = scores[pair] - np.log(state.probas[pair])
    return float((repeats_of(shard)[rows] * log_z).sum())
