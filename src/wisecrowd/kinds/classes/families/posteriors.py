r"""Posteriors of the tasks of a shard: at the start, over received labels, and of repeated rows.

A fit starts from soft votes or a given posterior, and restarts from random ones.

Voting and one-coin models hold posteriors over the labels that a task received. A class that task
``i`` did not receive keeps its prior :math:`\pi_{ik}` up to one factor :math:`r_i` that all such
classes share. A posterior is therefore one number per distinct (task, label) pair and one per task,
whatever the number of classes, and neither time nor memory grows with tasks × classes. The result
is a dense matrix if that is small, and sparse otherwise.

A row may stand for several tasks with the same labels. Its expected counts, its class mass and its
log-likelihood count as often as it is repeated; annotation weights are not that, they sharpen the
posterior. Sums over such rows are weighted here, because they are few.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.footprint import DENSE_LIMIT
from wisecrowd.core.types import Floats
from wisecrowd.kernels.arguments import TaskLabels
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.kernels.posteriors import (
    annotations_of,
    log_normalise,
    soft_votes,
    sum_by,
)
from wisecrowd.kinds.classes.kernels.sparse_posterior import (
    CoinOutput,
    LabelPairs,
    NormalisedPriors,
    VoteOutput,
)
from wisecrowd.kinds.classes.shards import Shard

STRETCH = 1 << 20  # numbers of dense rows processed at once


@dataclass(frozen=True, eq=False)
class Start:
    """The starting posterior of an iteration.

    Attributes
    ----------
    given : (n_tasks, n_classes) or None
        The user's posterior; by default the soft vote.
    noise : (n_tasks, n_classes) or None
        A random posterior that is mixed in with weight one half, for restarts.
    noise_seed : int or None
        The seed of such a posterior where shards draw their own rows, as those of packs do.
    """

    given: Floats | None = None
    noise: Floats | None = None
    noise_seed: int | None = None

    @property
    def is_vote(self) -> bool:
        """Whether this is the soft vote."""
        return self.given is None and self.noise is None and self.noise_seed is None

    def posterior(self, shard: Shard, n_classes: int) -> Floats:
        """Return the (n, K) posterior of a shard's tasks; gold tasks get their class."""
        if self.given is None:
            q = vote_posterior(shard, n_classes)
        else:
            q = condition(self.given[shard.tasks], shard)
        noise = self._noise_of(shard, n_classes)
        return q if noise is None else condition(0.5 * q + 0.5 * noise, shard)

    def _noise_of(self, shard: Any, n_classes: int) -> Floats | None:
        if self.noise_seed is not None:
            rng = np.random.default_rng([self.noise_seed, shard.number])
            return rng.dirichlet(np.ones(n_classes), size=shard.n_tasks)
        return None if self.noise is None else self.noise[shard.tasks]


@singledispatch
def random_start(data: Any, given: Floats | None, rng: np.random.Generator) -> Start:
    """Mix the given start, or the soft vote, with a random posterior, half each.

    ``data`` has the number of tasks and classes; shards of a pack draw their own rows.
    """
    return Start(given, rng.dirichlet(np.ones(data.n_classes), size=data.n_tasks))


def vote_posterior(shard: Shard, n_classes: int) -> Floats:
    """Return the soft vote of a shard's tasks times their prior, (n, K), gold tasks included."""
    votes = soft_votes(shard.indptr, shard.label, shard.weight, n_classes)
    # One row for all tasks must give the same start as this row repeated for each task.
    return condition(votes, shard) if shard.prior_rows.any() else votes


def condition(probas: Floats, shard: Shard) -> Floats:
    """Multiply by the shard's task prior and normalise: gold tasks get their class."""
    rows = shard.prior_rows[0] if shard.prior_index is None else shard.prior_rows[shard.prior_index]
    with np.errstate(divide="ignore"):
        scores = np.log(np.maximum(probas, 1e-300)) + rows
    return log_normalise(scores)[0]


@dataclass(frozen=True, eq=False)
class SparsePosterior:
    """The distinct labels of a shard's tasks, and arrays for a posterior over them.

    Attributes
    ----------
    pair : (annotations of the shard,) int32
        The pair of each annotation.
    indptr : (n_tasks + 1,), task : (n_pairs,) and label : (n_pairs,)
        The pairs of task ``i`` are ``indptr[i]`` to ``indptr[i + 1]``, sorted by label; tasks are
        counted within the shard.
    probas : (n_pairs,) and rest : (n_tasks,)
        The posterior; a class that the task did not receive has ``rest`` times its prior.
    """

    pair: NDArray[np.int32]
    indptr: NDArray[np.int64]
    task: NDArray[np.int32]
    label: NDArray[np.int32]
    probas: Floats
    rest: Floats

    @property
    def pairs(self) -> LabelPairs:
        """The pairs in the form that kernels take."""
        return LabelPairs(self.pair, self.indptr, self.task, self.label)


def begin_posterior(shard: Shard, n_classes: int) -> SparsePosterior:
    """Return the distinct labels of a shard's tasks, with empty arrays for their posterior."""
    kernels = shard.kernels("sparse_posterior")
    pair, indptr, task, label = kernels.received_labels(shard.indptr, shard.label, n_classes)
    probas, rest = np.empty(len(label)), np.empty(shard.n_tasks)
    return SparsePosterior(pair, indptr, task, label, probas, rest)


def row_totals(prior_rows: Floats, log_class: Floats) -> Floats:
    """Return the (R,) log of each prior row's total mass, including the class prior."""
    totals = np.empty(len(prior_rows))
    for some in _stretches(len(totals), len(log_class)):
        scores = prior_rows[some] + log_class
        top = scores.max(axis=1)
        totals[some] = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
    return totals


def _stretches(n_rows: int, n_classes: int) -> Iterator[slice]:
    size = max(1, STRETCH // n_classes)
    return (slice(a, min(a + size, n_rows)) for a in range(0, n_rows, size))


def mass_outside(shard: Shard, state: SparsePosterior, log_class: Floats, totals: Floats) -> Floats:
    r"""Return :math:`\sum_i r_i \pi_{ik}` (K,) over annotated tasks, computed once per row."""
    rest = np.where(np.diff(shard.indptr) > 0, state.rest, 0.0)
    if shard.prior_index is None:
        return np.asarray(rest.sum() * np.exp(log_class + shard.prior_rows[0] - totals[0]))
    by_row = np.bincount(shard.prior_index, weights=rest, minlength=len(totals))
    used = np.flatnonzero(by_row)
    mass = np.zeros(len(log_class))
    for some in _stretches(len(used), len(log_class)):
        rows = used[some]
        mass += by_row[rows] @ np.exp(shard.prior_rows[rows] + log_class - totals[rows, None])
    return mass


# --------------------------------------------------------------------------------- as a matrix


class PosteriorMatrix:
    """The posterior (n_tasks, n_classes) of all shards, dense or sparse.

    It is sparse beyond ``DENSE_LIMIT`` numbers. A sparse row holds the labels that the task
    received and its most probable class, such as a gold label. The remaining probability is spread
    over the other classes.

    Parameters
    ----------
    labels : CrowdLabels
    """

    def __init__(self, labels: CrowdLabels) -> None:
        self._shape = labels.n_tasks, labels.n_classes
        self._dense: Floats | None = None
        self._parts: dict[int, tuple[NDArray[Any], ...]] = {}
        self.by_frequency: NDArray[np.intp] | None = None  # classes by frequency; None where dense
        if labels.n_tasks * labels.n_classes <= DENSE_LIMIT:
            self._dense = np.empty(self._shape)
        else:
            self.by_frequency = np.argsort(-labels.class_totals, kind="stable")

    def store(self, tasks: slice, rows: Any) -> None:
        """Store the rows of a shard, as :func:`posterior_rows` returns them."""
        if self._dense is not None:
            self._dense[tasks] = rows
        else:
            task, label, values = rows
            self._parts[tasks.start] = tasks.start + task, label, values

    def matrix(self) -> Any:
        """Return the array or sparse matrix."""
        from scipy.sparse import coo_array

        if self._dense is not None:
            return self._dense
        parts = [self._parts[first] for first in sorted(self._parts)]
        task, label, values = (np.concatenate(part) for part in zip(*parts, strict=True))
        return coo_array((values, (task, label)), shape=self._shape).tocsr()


@singledispatch
def posterior_matrix(labels: Any) -> Any:
    """Return the matrix that the posteriors of shards go to; that of a pack is its files."""
    return PosteriorMatrix(labels)


def posterior_rows(
    shard: Shard,
    state: SparsePosterior,
    log_class: Floats,
    totals: Floats,
    by_frequency: NDArray[np.intp] | None,
) -> Any:
    """Return the posteriors (n, K) of a shard; with ``by_frequency`` as (task, class, value)."""
    if by_frequency is not None:
        task, label, values = _best_outside(shard, state, by_frequency, log_class, totals)
        return (
            np.concatenate([state.task, task]),
            np.concatenate([state.label, label]),
            np.concatenate([state.probas, values]),
        )
    probas = np.empty((shard.n_tasks, len(log_class)))
    for some in _stretches(len(probas), len(log_class)):
        probas[some] = _priors(shard, some, log_class, totals) * state.rest[some, None]
    probas[state.task, state.label] = state.probas
    return probas


def _priors(shard: Shard, tasks: Any, log_class: Floats, totals: Floats) -> Floats:
    """Return the normalised priors (c, K) of some tasks of a shard; one row if all share it."""
    if shard.prior_index is None:
        return np.asarray(np.exp(log_class + shard.prior_rows[:1] - totals[0]))
    row = shard.prior_index[tasks]
    return np.asarray(np.exp(log_class + shard.prior_rows[row] - totals[row, None]))


def _best_outside(
    shard: Shard,
    state: SparsePosterior,
    by_frequency: NDArray[np.intp],
    log_class: Floats,
    totals: Floats,
) -> tuple[NDArray[np.intp], NDArray[np.int32], Floats]:
    """Return (task, class, probability) of the two best classes of tasks that received neither.

    Two, so that ties are visible. This is rare except for tasks without labels: a class that was
    not received wins only by its prior, or if the workers are worse than chance.
    """
    best = np.zeros(shard.n_tasks)
    np.maximum.at(best, state.task, state.probas)
    highest = np.exp((log_class + shard.prior_rows.max(axis=0) - totals.min()).max())
    doubtful = np.flatnonzero(state.rest * min(1.0, highest) > best)
    found: list[tuple[NDArray[np.intp], NDArray[np.int32], Floats]] = []
    for some in _stretches(len(doubtful), len(log_class)):
        tasks = doubtful[some]
        probas = np.array(
            np.broadcast_to(_priors(shard, tasks, log_class, totals), (len(tasks), len(log_class)))
        )
        probas *= state.rest[tasks, None]
        counts = np.diff(state.indptr)[tasks]
        local = np.repeat(np.arange(len(tasks)), counts)
        within = np.arange(len(local)) - np.repeat(np.cumsum(counts) - counts, counts)
        probas[local, state.label[state.indptr[tasks][local] + within]] = 0.0
        ranked = probas[:, by_frequency]
        first = ranked.argmax(axis=1)
        every = np.arange(len(tasks))
        top = ranked[every, first]
        ranked[every, first] = -1.0
        second = ranked.argmax(axis=1)
        for column, value in ((first, top), (second, ranked[every, second])):
            wins = (value >= top) & (value > best[tasks])
            found.append((tasks[wins], by_frequency[column[wins]].astype(np.int32), value[wins]))
    if not found:
        return np.empty(0, np.intp), np.empty(0, np.int32), np.empty(0)
    task, label, probas = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return task, label, probas


# ------------------------------------------------------------------------------ worker accuracy


def worker_weights(labels: Any) -> Floats:
    """Return the (n_workers,) total weight of each worker's labels, in memory or of a pack."""
    return np.array(labels.worker_totals)


def single_task_workers(labels: CrowdLabels) -> NDArray[np.bool_]:
    """Return which workers (n_workers,) labelled only one task, however often.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays([0, 0, 1, 1], ["a", "b", "b", "c"], [1, 1, 0, 0])
    >>> single_task_workers(labels)
    array([ True, False,  True])
    """
    task, worker = labels.task, labels.worker
    if labels.weight is not None:
        task, worker = task[labels.weight > 0], worker[labels.weight > 0]
    first = np.ones(len(task), dtype=bool)  # first of the labels that a worker gave to a task
    first[1:] = (task[1:] != task[:-1]) | (worker[1:] != worker[:-1])
    return np.asarray(np.bincount(worker[first], minlength=labels.n_workers) == 1)


def share_of(correct: Floats, total: Floats, otherwise: float) -> Floats:
    """Return ``correct / total``, and ``otherwise`` for workers without labels."""
    return np.where(total > 0, correct / np.where(total > 0, total, 1.0), otherwise)


def given_start(
    shard: Shard, state: SparsePosterior, given: Floats, n_workers: int
) -> tuple[Floats, Floats]:
    """Return the correct labels (J,) and class mass (K,) of a given posterior (n_tasks, K)."""
    probas = condition(given[shard.tasks], shard)
    credit = probas[state.task, state.label][state.pair]
    if shard.weight is not None:
        credit = credit * shard.weight
    correct = np.bincount(shard.worker, weights=credit, minlength=n_workers)
    return correct.astype(np.float64), probas[shard.labelled].sum(axis=0)


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
