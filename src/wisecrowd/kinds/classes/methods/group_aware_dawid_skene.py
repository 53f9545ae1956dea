"""Dawid and Skene's model for workers who depend on each other in groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.parameter_checks import Limits
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Codes, Floats
from wisecrowd.inference.engine import rows_into
from wisecrowd.inference.loop import LoopResult, best_of, first_params, iterate
from wisecrowd.inference.priors import as_row_prior, pseudo_counts
from wisecrowd.kinds.classes.families.class_prior import known_class_prior, log_shares
from wisecrowd.kinds.classes.families.confusion import (
    ConfusionEM,
    accuracy_of,
    as_confusion,
    as_table,
    safe_log,
)
from wisecrowd.kinds.classes.families.posteriors import Start, condition
from wisecrowd.kinds.classes.families.worker_groups import Opinions, check_groups, groups_of
from wisecrowd.kinds.classes.kernels.posteriors import log_normalise
from wisecrowd.kinds.classes.methods.dawid_skene import DirichletModel, dirichlet_update
from wisecrowd.kinds.classes.shards import Shard


class GroupStats(NamedTuple):
    """Additive statistics of a pass over the labels.

    Counts (J·K, K) by reported opinion, transfer counts (G, K, K) from classes to opinions, class
    mass (K,) and the log-likelihood.
    """

    counts: Floats
    transfer: Floats
    mass: Floats
    log_likelihood: float


class GroupAnswer(NamedTuple):
    """Additive statistics of the final posteriors: counts (J·K, K) by class, log-likelihood."""

    counts: Floats
    log_likelihood: float


class GroupParams(NamedTuple):
    """Log confusion of workers (J·K, K) and groups (G, K, K), log class prior (K,), log prior."""

    table: Floats
    log_transfer: Floats
    log_class: Floats
    log_prior: float


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupModel:
    """Groups that hold one opinion per task, and workers who report it; the state is the opinions.

    An ungrouped worker reports the class itself. Opinions are a sparse list, with one entry per
    group and task that the group labelled.

    Attributes
    ----------
    n_workers, n_classes : int
    fixed_class : (K,) log class prior, or None where it is estimated
    groups : (J,)
        Group of each worker, -1 for ungrouped workers.
    alpha : (K, L) or (J, K, L)
        Pseudo-counts of the workers' confusion rows.
    group_alpha : (K, K)
        Pseudo-counts of the groups' confusion rows.
    """

    n_workers: int
    n_classes: int
    fixed_class: Floats | None
    groups: Codes
    alpha: Floats
    group_alpha: Floats

    def begin(self, shard: Shard) -> Opinions:
        """Return the opinions of a shard."""
        return Opinions.of(shard, self.groups, self.n_classes)

    def first(self, shard: Shard, state: Opinions, start: Start) -> tuple[Opinions, GroupStats]:
        """Return the expected counts of a start; each group's opinion starts as its soft vote."""
        votes = state.fused_votes(hard=False)
        labelled = votes.sum(axis=1) > 0
        votes[~labelled] = 1.0
        q = votes / votes.sum(axis=1, keepdims=True)
        q = condition(q if start.given is None else start.given[shard.tasks], shard)
        if start.noise is not None:
            q = condition(0.5 * q + 0.5 * start.noise[shard.tasks], shard)
        belief, rows, transfer = q[state.task], state.shared, self._no_transfer()
        shares = state.votes[rows] / state.votes[rows].sum(axis=1, keepdims=True)
        for k in range(self.n_classes):
            _add_rows(transfer[:, k], state.group[rows], belief[rows, k, None] * shares)
        belief[rows] = shares
        counts = self._counts(shard, state, belief)
        return state, GroupStats(counts, transfer, q[labelled].sum(axis=0), 0.0)

    def local_step(
        self, shard: Shard, state: Opinions, params: GroupParams
    ) -> tuple[Opinions, GroupStats]:
        """Run the E-step of one shard and return its expected counts."""
        said, message = _messages(shard, state, params)
        probas, value = _posterior(shard, state, message, params.log_class)
        belief, rows = probas[state.task], state.shared  # (n_opinions, K)
        group, transfer = state.group[rows], self._no_transfer()
        q, heard = belief[rows], np.zeros((len(rows), self.n_classes))
        for k in range(self.n_classes):
            joint = np.exp(params.log_transfer[group, k] + said[rows] - message[rows, k, None])
            joint *= q[:, k, None]
            heard += joint
            _add_rows(transfer[:, k], group, joint)
        belief[rows] = heard
        counts = self._counts(shard, state, belief)
        return state, GroupStats(counts, transfer, probas[shard.labelled].sum(axis=0), value)

    def global_step(self, stats: GroupStats, params: GroupParams | None) -> GroupParams:
        """Run the M-step."""
        log_confusion, log_prior = dirichlet_update(as_confusion(stats.counts), self.alpha)
        log_transfer, more = dirichlet_update(stats.transfer, self.group_alpha)
        log_class = log_shares(stats.mass) if self.fixed_class is None else self.fixed_class
        return GroupParams(as_table(log_confusion), log_transfer, log_class, log_prior + more)

    def objective(self, stats: GroupStats, params: GroupParams) -> float:
        """Return the log-likelihood plus log prior density, both at ``params``."""
        return stats.log_likelihood + params.log_prior

    def extrapolate(self, first: GroupParams, second: GroupParams, third: GroupParams) -> None:
        """Return None: there is no acceleration."""

    def answer(
        self, shard: Shard, state: Opinions, params: GroupParams
    ) -> tuple[Floats, GroupAnswer]:
        """Return the posteriors (n, K) of one shard, its expected counts and log-likelihood."""
        message = _messages(shard, state, params)[1]
        probas, value = _posterior(shard, state, message, params.log_class)
        counts = np.zeros_like(params.table)
        shard.kernels("confusion").add_counts(
            shard.indptr, shard.cell, shard.weight, probas, counts
        )
        return probas, GroupAnswer(counts, value)

    def _no_transfer(self) -> Floats:
        return np.zeros((int(self.groups.max(initial=-1)) + 1, self.n_classes, self.n_classes))

    def _counts(self, shard: Shard, opinions: Opinions, belief: Floats) -> Floats:
        """Return expected counts (J·K, K) from posteriors (n_opinions, K) of the opinions."""
        counts = np.empty((self.n_workers * self.n_classes, self.n_classes))
        for c in range(self.n_classes):
            values = belief[opinions.of_annotation, c]
            values = values if shard.weight is None else shard.weight * values
            counts[:, c] = np.bincount(shard.cell, values, len(counts))
        return counts


def _messages(shard: Shard, opinions: Opinions, params: GroupParams) -> tuple[Floats, Floats]:
    """Return the log-likelihoods (n_opinions, K) of the opinion, and of the class through it."""
    table, n = params.table, len(opinions.task)
    said = np.empty((n, table.shape[1]))
    for c in range(table.shape[1]):
        values = table[shard.cell, c]
        values = values if shard.weight is None else shard.weight * values
        said[:, c] = np.bincount(opinions.of_annotation, values, n)
    message, shared = said.copy(), opinions.shared
    group = opinions.group[shared]
    for k in range(table.shape[1]):
        message[shared, k] = log_normalise(params.log_transfer[group, k] + said[shared])[1]
    return said, message


def _posterior(
    shard: Shard, opinions: Opinions, message: Floats, log_class: Floats
) -> tuple[Floats, float]:
    """Return the posteriors (n, K) of a shard and its log-likelihood."""
    prior = shard.prior_rows[0 if shard.prior_index is None else shard.prior_index]
    probas, log_z = log_normalise(opinions.by_task(message) + log_class + prior)
    return probas, float(log_z[shard.labelled].sum())


def _add_rows(total: Floats, index: NDArray[np.int64], values: Floats) -> None:
    """Add rows of values (n, K) to those of ``total`` (G, K) that ``index`` names."""
    for c in range(values.shape[1]):
        total[:, c] += np.bincount(index, values[:, c], len(total))


def _marginal(member: Floats, of_group: Floats, groups: Codes) -> Floats:
    """Return p(label | class) (J, K, K); for group members, through the group's opinion."""
    confusion, inside = member.copy(), groups >= 0
    confusion[inside] = np.matmul(of_group[groups[inside]], member[inside])
    return confusion


@dataclass(eq=False, repr=False, kw_only=True)
class GroupAwareDawidSkene(ConfusionEM):
    r"""Confusion matrices of workers and of groups, whose members report one latent opinion.

    .. math::
        z_i \sim Cat(\pi), \qquad w_{ig} \mid z_i = k \sim Cat(\Xi_{gk\cdot}), \qquad
        y_{ij} \mid w_{ig(j)} = c \sim Cat(\theta_{jc\cdot})

    Use it when some workers copy, talk to each other, or are models of one kind: a group counts as
    one opinion, however large it is. Ungrouped workers are as in Dawid-Skene. Cost per iteration:
    O(annotations × classes + opinions of groups × classes²).

    Parameters
    ----------
    groups : "auto", int, mapping or (n_workers,) array
        "auto" finds groups of workers who agree more than their skills explain and leaves all
        others ungrouped; an integer divides all workers into that many groups; a mapping from
        worker to group, or an array, gives the groups.
    prior : "weak", None, number, (n_classes, n_classes) array or prior object
        Pseudo-counts of all confusion rows, as in Dawid-Skene. If each worker has its own prior,
        groups use "weak".
    class_prior, max_iter, tol, n_init, random_state
        See :class:`~wisecrowd.kinds.classes.families.confusion.ConfusionEM`. The start is a soft
        vote in which each group has one vote.

    Attributes
    ----------
    group_ : (n_workers,)
        Number of each worker's group, -1 for ungrouped workers.
    group_confusion_ : (n_groups, n_classes, n_classes)
        :math:`\Xi`: distribution of a group's opinion given the class.
    member_confusion_ : (n_workers, n_classes, n_classes)
        :math:`\theta`: distribution of a worker's label given the group's opinion, or given the
        class for ungrouped workers.
    confusion_ : (n_workers, n_classes, n_classes)
        p(label | class) of each worker: :math:`\Xi_{g(j)} \theta_j` for members.
    class_prior_ : (n_classes,)

    Notes
    -----
    Without groups this is :class:`~wisecrowd.aggregation.DawidSkene`. Groups are found once, before
    the fit, from pairwise agreement only.

    References
    ----------
    A. Jaffe, E. Fetaya, B. Nadler, T. Jiang and Y. Kluger (2016). Unsupervised ensemble learning
    with dependent classifiers. AISTATS, 351-360.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> votes = np.array([[0, 0, 0], [1, 1, 1], [0, 0, 0], [1, 1, 1], [0, 1, 1], [1, 0, 0]])
    >>> copied = np.hstack([votes, np.repeat(votes[:, :1], 9, axis=1)])
    >>> groups = [0, 1, 2] + [0] * 9
    >>> GroupAwareDawidSkene(groups=groups).fit(CrowdLabels.from_matrix(copied)).labels_
    array([0, 1, 0, 1, 1, 0])
    """

    groups: Any = "auto"
    prior: Any = "weak"
    class_prior: Any = "auto"
    max_iter: int = 500
    tol: float = 1e-6
    n_init: int = 1
    random_state: Any = 0

    saves: ClassVar[dict[str, Saved]] = {
        "group_": SavedArray("J", "group"),
        "group_confusion_": SavedArray("groups K K", "distribution"),
        "member_confusion_": SavedArray("J K K", "distribution"),
    }
    promises: ClassVar[Tags] = Tags(monotone=True, inductive=True, likelihood=True, confusion=True)
    footprint = Footprint(label=8.4, cell=18.4, confusion=100.0, pair_table=80.0)
    limits: ClassVar[Limits] = {"groups": check_groups}

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {"groups": int(self.group_.max(initial=-1)) + 1}

    # --------------------------------------------------------------------------------------- fit

    def _model(self, problem: Problem) -> DirichletModel:
        """Return the model of ungrouped workers."""
        alpha = pseudo_counts(self.prior, problem.data)
        return DirichletModel(**self._shape(problem), alpha=alpha)

    def _group_model(self, problem: Problem, groups: Codes) -> GroupModel:
        alpha = group_alpha = pseudo_counts(self.prior, problem.data)
        if alpha.ndim > 2:  # one for every worker, but none for groups
            group_alpha = as_row_prior("weak").pseudo_counts((), problem.data.n_classes)
        return GroupModel(
            **self._shape(problem), groups=groups, alpha=alpha, group_alpha=group_alpha
        )

    def _fit(self, problem: Problem) -> Fit:
        labels = problem.data
        J, K = labels.n_workers, labels.n_classes
        groups = groups_of(self.groups, labels)
        if groups.max(initial=-1) < 0:
            result = super()._fit(problem)
            result.extra.update(
                group=groups,
                group_confusion=np.empty((0, K, K)),
                member_confusion=result.confusion,
            )
            return result
        require_memory(
            8 * (6 * J * K * K + 6 * labels.n_annotations * K),
            f"GroupAwareDawidSkene with {J} workers and {K} classes would",
            "use group-aware-majority-vote, which needs no matrices",
        )
        model, shards = self._group_model(problem, groups), problem.cut(J * K * K)

        def attempt(number: int) -> LoopResult:
            start = self._start(problem, problem.rng if number > 0 else None)
            params, states = first_params(model, shards, start)
            return iterate(model, shards, params, states, max_iter=self.max_iter, tol=self.tol)

        best = best_of(attempt, self.n_init)
        probas = np.empty((labels.n_tasks, K))
        answer = shards.collect(model, "answer", best.states, best.params, rows_into(probas))
        return self._group_result(best, probas, groups, answer)

    def _group_result(
        self, best: LoopResult, probas: Floats, groups: Codes, answer: GroupAnswer
    ) -> Fit:
        params: GroupParams = best.params
        member, of_group = np.exp(as_confusion(params.table)), np.exp(params.log_transfer)
        confusion = _marginal(member, of_group, groups)
        class_prior = np.exp(params.log_class)
        class_prior = class_prior / class_prior.sum()
        return Fit(
            probas,
            accuracy_of(confusion, class_prior),
            class_prior=class_prior,
            confusion=confusion,
            n_iter=best.n_iter,
            converged=best.converged,
            history=best.history,
            extra={"group": groups, "group_confusion": of_group, "member_confusion": member},
        )

    # ----------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Floats:
        return self._known_groups(problem)[0]

    def _log_likelihood(self, problem: Problem) -> float:
        return self._known_groups(problem)[1]

    def _known_groups(self, problem: Problem) -> tuple[Floats, float]:
        """Return the posterior (n_tasks, K) of tasks under the fit, and their log-likelihood."""
        labels, K = problem.data, problem.data.n_classes
        extra = labels.n_workers - len(self.group_)  # one if there are unknown workers
        member = np.concatenate([self.member_confusion_, np.full((extra, K, K), 1 / K)])
        log_class = known_class_prior(self.class_prior, problem.prior, self.class_prior_)
        params = GroupParams(
            as_table(safe_log(member)), safe_log(self.group_confusion_), log_class, 0.0
        )
        model = GroupModel(
            n_workers=labels.n_workers,
            n_classes=K,
            fixed_class=log_class,
            groups=np.append(self.group_, np.full(extra, -1, dtype=np.int32)),
            alpha=np.zeros((K, K)),
            group_alpha=np.zeros((K, K)),
        )
        shards, probas = problem.cut(params.table.size), np.empty((labels.n_tasks, K))
        answer = shards.collect(model, "answer", shards.begin(model), params, rows_into(probas))
        return probas, answer.log_likelihood
