r"""One weight per worker, estimated from pairwise agreement, then a weighted vote.

.. math::
    q_i(k) \propto \pi_{ik} \exp\Big(\kappa \sum_{j: y_{ij} = k} u_j\Big)

This is the posterior of a one-coin model whose log-odds are :math:`\kappa u_j`. A method that
estimates accuracies sets :math:`u` to their log-odds and :math:`\kappa = 1`. A method that
estimates weights up to scale decides by the sign of a weighted vote, which :math:`\kappa` does not
change. Then :math:`\kappa` is fitted by maximum likelihood, so that the probabilities are supported
by the data.

Gold labels act as one more worker. A task prior enters only the posterior. Agreement alone does not
determine which of the two classes is which. The sign is chosen so that the weighted vote agrees
with the plain vote in total, which assumes that most workers are better than chance. Signs and
scales are chosen for each connected component of the crowd.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats, Ints
from wisecrowd.inference.priors import OneCoinPrior
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.moments.pair_moments import agreement_with_votes
from wisecrowd.kinds.classes.families.posteriors import (
    posterior_matrix,
    share_of,
    worker_weights,
)
from wisecrowd.kinds.classes.kernels.posteriors import log_normalise
from wisecrowd.kinds.classes.methods.one_coin import CoinParams, CoinStats, OneCoinModel, log_wrong
from wisecrowd.kinds.classes.prior import TaskPrior, certain_classes

GRID = np.geomspace(0.02, 12.0, 17)  # log-odds of the best worker in the search for the scale
PSEUDO = (1.0, 0.5)  # pseudo-counts of right and wrong labels of every worker


@dataclass(frozen=True, eq=False)
class Skills:
    """Estimated worker skills.

    Attributes
    ----------
    weight : (n_workers,)
        Vote weights: log-odds, or known up to a common scale.
    scaled : bool
        Whether the weights are log-odds already.
    accuracy : (n_workers,), optional
        The method's own estimate; by default the expected share of correct labels.
    offset : (n_classes,), optional
        Value added to every task's vote, on the scale of the weights.
    score : (n_tasks,), optional
        Signed votes (class 1 against class 0), if they are not a sum of worker weights.
    """

    weight: Floats
    scaled: bool = False
    accuracy: Floats | None = None
    offset: Floats | None = None
    score: Floats | None = None
    n_iter: int = 1
    converged: bool = True
    history: tuple[float, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)


class SkillVote(Aggregator):
    """Base of methods that estimate worker weights and then vote with them."""

    saves: ClassVar[dict[str, Saved]] = {
        "vote_weight_": SavedArray("J"),
        "vote_offset_": SavedArray("K", "log"),
    }

    def _skills(self, problem: Problem, gold: Ints) -> Skills:
        """Return the skills; ``gold`` (n_tasks,) has known classes, and -1 elsewhere."""
        raise TypeError(f"{type(self).__name__} must define _skills.")

    def _fit(self, problem: Problem) -> Fit:
        gold = certain_classes(problem.prior, problem.data.n_tasks)
        return self._voted(problem, self._skills(problem, gold))

    def _fit_pack(self, problem: Problem) -> Fit:
        """Return the fit to a pack: skills need only its sums over pairs of workers."""
        labels: Any = problem.data
        pairs = labels.agreement(problem.cut(labels.n_workers))
        skills = self._skills(replace(problem, data=pairs), np.empty(0, np.int64))
        return self._voted(problem, skills)

    def _voted(self, problem: Problem, skills: Skills) -> Fit:
        """Return the fit of a vote with these skills."""
        labels, prior = problem.data, problem.prior
        votes = CoinVotes(problem)
        offset = np.zeros(labels.n_classes)
        if skills.offset is not None:
            offset = skills.offset[: labels.n_classes]  # a single class has a single offset
        scale = 1.0 if skills.scaled else votes.best_scale(skills.weight, offset)
        weight = scale * skills.weight
        log_class = _log_softmax(scale * offset)
        if skills.score is None:
            probas, stats = votes.posterior(weight, log_class)
            correct = stats.correct
        else:
            probas = signed_posterior(scale * skills.score, prior)
            correct = right_labels(labels, probas)
        accuracy = skills.accuracy
        if accuracy is None:
            accuracy = share_of(correct, votes.total, 1 / labels.n_classes)
        return Fit(
            probas,
            accuracy,
            n_iter=skills.n_iter,
            converged=skills.converged,
            history=skills.history,
            extra={"vote_weight": weight, "vote_offset": log_class, **skills.extra},
        )

    def _predict(self, problem: Problem) -> Any:
        weight = self.vote_weight_
        if problem.data.n_workers > len(weight):  # one more row, for unknown workers
            weight = np.append(weight, 0.0)
        return CoinVotes(problem).posterior(weight, self.vote_offset_)[0]


class CoinVotes:
    """Votes in log-odds: runs a round, returns the last posterior, and fits the scale."""

    def __init__(self, problem: Problem) -> None:
        labels = problem.data
        self.total = worker_weights(labels)  # (J,) total weight of each worker's labels
        self._labelled = float(labels.n_labelled)
        self._probas = posterior_matrix(labels)
        self._model = OneCoinModel(
            coin=OneCoinPrior(0.0, 0.0),
            weights=self.total,
            n_classes=labels.n_classes,
            by_frequency=self._probas.by_frequency,
        )
        self._shards = problem.cut(labels.n_workers)
        self._states = self._shards.begin(self._model)

    def round(self, log_odds: Floats, log_class: Floats) -> CoinStats:
        """Vote; return the correct labels (J,), the class mass (K,) and the sum of log Z."""
        params = CoinParams(log_odds, log_odds, log_class)
        stats: CoinStats
        _, stats = self._shards.map_reduce(self._model, "local_step", self._states, params)
        return stats

    def posterior(self, log_odds: Floats, log_class: Floats) -> tuple[Any, CoinStats]:
        """Vote; return the posterior (n_tasks, n_classes), dense or sparse, and the statistics."""
        params, store = CoinParams(log_odds, log_odds, log_class), self._probas.store
        stats = self._shards.collect(self._model, "answer", self._states, params, store)
        return self._probas.matrix(), stats

    def best_scale(self, weight: Floats, offset: Floats) -> float:
        r"""Return the maximum-likelihood scale :math:`\kappa`.

        The likelihood is that of one-coin workers with log-odds :math:`\kappa u_j`, each with the
        pseudo-counts of right and wrong labels that prevent certainty.
        """
        n_classes = len(offset)
        top = float(np.abs(weight[self.total > 0]).max(initial=0.0))
        if n_classes == 1 or not top > 0:
            return 1.0

        n_right = np.where(self.total > 0, PSEUDO[0], 0.0)
        n_all = np.where(self.total > 0, self.total + sum(PSEUDO), 0.0)

        def likelihood(scale: float) -> tuple[float, float]:
            log_odds, log_class = scale * weight, _log_softmax(scale * offset)
            stats = self.round(log_odds, log_class)
            # p = exp(u) / (exp(u) + K - 1), by tanh, which does not overflow.
            right = 0.5 * (1 + np.tanh(0.5 * (log_odds - np.log(n_classes - 1))))
            log_of_wrong = -np.logaddexp(log_odds, np.log(n_classes - 1))
            value = stats.log_z + log_of_wrong @ n_all + log_odds @ n_right
            slope = weight @ (stats.correct + n_right - n_all * right)
            slope += offset @ (stats.mass - self._labelled * np.exp(log_class))
            return float(value), float(slope)

        return _highest(likelihood, GRID / top)


def _highest(function: Callable[[float], tuple[float, float]], grid: Floats) -> float:
    """Return the argmax of a function with known slope: the best grid cell, then a root.

    The root of the slope is more precise than a search among values.
    """
    from scipy.optimize import brentq

    values, slopes = np.array([function(float(x)) for x in grid]).T
    best = int(values.argmax())
    low, high = max(best - 1, 0), min(best + 1, len(grid) - 1)
    if slopes[best] > 0:
        low = best
    else:
        high = best
    if not slopes[low] > 0 > slopes[high]:
        return float(grid[best])  # the maximum is at the end of the grid
    root = brentq(lambda x: function(float(x))[1], grid[low], grid[high], xtol=1e-14, rtol=1e-14)
    return float(root)


# ---------------------------------------------------------------------------------- small parts


def _log_softmax(scores: Floats) -> Floats:
    return np.asarray(scores - np.logaddexp.reduce(scores))


def clipped_log_odds(accuracy: Floats, total: Floats, n_classes: int) -> tuple[Floats, Floats]:
    """Return accuracies, limited to one error in ``n + 2`` labels, and their log-odds."""
    if n_classes == 1:
        return np.ones_like(accuracy), np.zeros_like(accuracy)
    least = 1 / (total + 2)
    clipped = np.clip(accuracy, np.minimum(least, 0.5) / (n_classes - 1), 1 - least)
    return clipped, np.log(clipped) - log_wrong(clipped, n_classes)


def fill_in(skill: Floats, identified: NDArray[np.bool_], total: Floats) -> Floats:
    """Give workers who share no task with others the mean skill of the others, or 1/2."""
    weight = np.where(identified, total, 0.0)
    mean = float(skill @ weight / weight.sum()) if weight.sum() > 0 else 0.5
    return np.where(identified, skill, mean if mean > 0 else 0.5)


def sum_by(index: Ints, values: Any, size: int) -> Floats:
    """Sum values by index."""
    return np.bincount(index, weights=values, minlength=size).astype(np.float64, copy=False)


def signed_posterior(score: Floats, prior: TaskPrior) -> Floats:
    """Return the posterior (n_tasks, K), K ≤ 2, of signed log-odds of class 1 against class 0."""
    log_prior = prior.dense(len(score))
    if log_prior.shape[1] == 1:
        return np.ones((len(score), 1))
    return log_normalise(log_prior + 0.5 * score[:, None] * np.array([-1.0, 1.0]))[0]


def right_labels(labels: CrowdLabels, probas: Floats) -> Floats:
    """Return the expected number of correct labels of each worker, (J,)."""
    right = probas[labels.task, labels.label]
    if labels.weight is not None:
        right = right * labels.weight
    return sum_by(labels.worker, right, labels.n_workers)


# --------------------------------------------------------------------------------- label matrix


@dataclass(frozen=True, eq=False)
class SignedLabels:
    """Labels as a sparse signed matrix, one entry per (task, worker) that counts.

    Attributes
    ----------
    task, worker : (n_entries,)
        Gold labels are those of worker ``n_workers``.
    signed : (n_entries,)
        Weight of labels "class 1" minus weight of labels "class 0".
    task_part, worker_part : (n_tasks,), (n_workers + 1,)
        The connected component of each task and worker.
    """

    task: Ints
    worker: Ints
    signed: Floats
    task_part: Ints
    worker_part: Ints
    n_parts: int

    def by_task(self, values: Floats) -> Floats:
        """Sum values of entries by task."""
        return sum_by(self.task, values, len(self.task_part))

    def by_worker(self, values: Floats) -> Floats:
        """Sum values of entries by worker."""
        return sum_by(self.worker, values, len(self.worker_part))


def signed_labels(labels: CrowdLabels, gold: Ints) -> SignedLabels:
    """Return the labels of two classes as ±1, with gold labels as one more worker."""
    task, worker, weight, label = _with_gold(labels, gold)
    n_columns = labels.n_workers + 1
    key, entry = np.unique(task.astype(np.int64) * n_columns + worker, return_inverse=True)
    signed = sum_by(entry, weight * (2.0 * label - 1.0), len(key))
    entry_task, entry_worker = key // n_columns, key % n_columns
    parts = _parts(entry_task, entry_worker, labels.n_tasks, n_columns)
    return SignedLabels(entry_task, entry_worker, signed, *parts)


def _with_gold(labels: CrowdLabels, gold: Ints) -> tuple[Ints, Ints, Floats, Ints]:
    """Return task, worker, weight and label of annotations of nonzero weight, gold ones last."""
    weight = labels.weights
    counts, known = np.flatnonzero(weight > 0), np.flatnonzero(gold >= 0)
    return (
        np.concatenate([labels.task[counts], known]),
        np.concatenate([labels.worker[counts], np.full(len(known), labels.n_workers)]),
        np.concatenate([weight[counts], np.ones(len(known))]),
        np.concatenate([labels.label[counts], gold[known]]),
    )


def _parts(task: Ints, worker: Ints, n_tasks: int, n_workers: int) -> tuple[Ints, Ints, int]:
    """Return the connected component of each task and worker, and the number of components."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    size = n_tasks + n_workers
    graph = coo_array((np.ones(len(task), np.int8), (task, n_tasks + worker)), shape=(size, size))
    n_parts, part = connected_components(graph, directed=False)
    return part[:n_tasks], part[n_tasks:], int(n_parts)


@singledispatch
def vote_agreement(labels: Any, gold: Ints) -> Floats:
    """Return each worker's agreement with the plain vote, or gold, beyond chance."""
    return agreement_with_votes(labels, gold)


def orient(skill: Floats, agreement: Floats, part: Ints, n_parts: int) -> Floats:
    """Choose the sign of each component so that the weighted vote agrees with the plain vote."""
    agrees = np.bincount(part, weights=skill * agreement, minlength=n_parts)
    return np.asarray(np.where(agrees[part] < 0, -skill, skill))


def unit(vector: Floats, part: Ints, n_parts: int) -> tuple[Floats, Floats]:
    """Return the vector with norm one (or zero) in each component, and the norms."""
    norm = np.sqrt(np.bincount(part, weights=vector**2, minlength=n_parts))
    return vector / np.where(norm > 0, norm, 1.0)[part], norm


# -------------------------------------------------------------------------------- pairs of workers


@dataclass(frozen=True, eq=False)
class Pairs:
    r"""Agreement of pairs of different workers on their common tasks, each pair both ways.

    Attributes
    ----------
    first, second : (n_pairs,)
        Sorted by (first, second); gold labels are those of worker ``n_workers - 1``.
    agreement : (n_pairs,)
        :math:`(K A_{jk} - 1) / (K - 1)` with :math:`A` the share of equal labels: 1 for always
        equal, 0 for chance. For one-coin workers its expectation is :math:`s_j s_k`, with
        :math:`s = (K p - 1) / (K - 1)`.
    common : (n_pairs,)
        Weight of the common tasks.
    """

    first: Ints
    second: Ints
    agreement: Floats
    common: Floats
    n_workers: int

    def parts(self) -> tuple[Ints, int]:
        """Return the connected component of each worker, and the number of components."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        shape = (self.n_workers, self.n_workers)
        graph = coo_array((np.ones(len(self.first), np.int8), (self.first, self.second)), shape)
        n_parts, part = connected_components(graph, directed=False)
        return part, int(n_parts)


@singledispatch
def pair_agreement(labels: Any, gold: Ints) -> Pairs:
    """Return the agreement of all pairs of workers that share a task, as a sparse list."""
    from scipy.sparse import coo_array

    per_task = labels.labels_per_task.astype(np.float64)
    size = min(float((per_task**2).sum()), float(labels.n_workers) ** 2)
    require_memory(
        int(80 * size),
        "The pairs of workers who share tasks",
        "use one-coin or majority-vote, which need a few bytes per annotation",
    )
    task, worker, weight, label = _with_gold(labels, gold)
    K, n_workers = labels.n_classes, labels.n_workers + 1
    given = coo_array((weight, (task, worker)), shape=(labels.n_tasks, n_workers)).tocsr()
    distinct, row = np.unique(task.astype(np.int64) * K + label, return_inverse=True)
    equal = coo_array((weight, (row, worker)), shape=(len(distinct), n_workers)).tocsr()
    common = (given.T @ given).tocsr()
    both = common + (equal.T @ equal).tocsr()  # it has the entries of common, none of them zero
    common.sort_indices()
    both.sort_indices()
    first = np.repeat(np.arange(n_workers), np.diff(common.indptr))
    apart = np.flatnonzero(first != common.indices)
    n = common.data[apart]
    agreement = beyond_chance(both.data[apart] - n, n, K)
    return Pairs(first[apart], common.indices[apart], agreement, n, n_workers)


def beyond_chance(equal: Floats, common: Floats, n_classes: int) -> Floats:
    """Return the share of equal labels, scaled so that chance is 0 and full agreement is 1."""
    chance = 1 / max(n_classes - 1, 1)
    return np.asarray(equal / common * (1 + chance) - chance)
