r"""Confusion matrices for groups of dependent workers, fitted by EM.

.. math::
    z_i \sim Cat(\pi), \qquad w_{ig} \mid z_i = k \sim Cat(\Xi_{gk\cdot}), \qquad
    y_{ij} \mid w_{ig(j)} = c \sim Cat(\theta_{jc\cdot})

A group holds one hidden opinion :math:`w` per task, and its workers report it. For workers on their
own the opinion is the class itself. Opinions are a sparse list: one per task and group that meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.memory import require_memory
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import FitResult
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.engines.memory import Block, MemoryShards
from wisecrowd.families.confusion import (
    ConfusionEM,
    Params,
    accuracy_of,
    as_confusion,
    as_table,
    dirichlet_update,
    safe_log,
)
from wisecrowd.families.groups import Opinions, check_groups, groups_of
from wisecrowd.inference.class_prior import fixed_class_prior, known_class_prior
from wisecrowd.inference.initial import condition, perturbed
from wisecrowd.inference.loop import Run, best_of, run
from wisecrowd.kernels.posteriors import log_normalise

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]


class _Stats(NamedTuple):
    """Additive statistics: counts (J·K, K) by what the worker heard, transfer (G, K, K), mass."""

    counts: Floats
    transfer: Floats
    mass: Floats
    log_likelihood: float


@dataclass(frozen=True, eq=False)
class _State:
    """A block's opinions, and where its posteriors (n, K) go."""

    opinions: Opinions
    probas: Floats


class GroupedConfusionEM(ConfusionEM):
    """EM for groups; a subclass sets the pseudo-counts ``_alpha`` and ``_group_alpha``.

    Parameters
    ----------
    groups : "auto", int, mapping or (n_workers,) array
        See :func:`~wisecrowd.families.groups.groups_of`.
    class_prior, max_iter, tol, n_init, random_state
        See :class:`~wisecrowd.families.confusion.ConfusionEM`.
    """

    groups: Any = "auto"

    _alpha: Floats
    _group_alpha: Floats

    saves: ClassVar[dict[str, Saved]] = {
        "group_": SavedArray("J", "group"),
        "group_confusion_": SavedArray("groups K K", "distribution"),
        "member_confusion_": SavedArray("J K K", "distribution"),
    }

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_groups(self.groups)

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {"groups": int(self.group_.max(initial=-1)) + 1}

    def _worker_update(
        self, counts: Floats, previous: dict[str, Any] | None
    ) -> tuple[Floats, float, dict[str, Any]]:
        return *dirichlet_update(counts, self._alpha), {}

    # ---------------------------------------------------------------------------------- EM steps

    def local_step(self, block: Block, state: Any, params: Params) -> tuple[Any, Any]:
        """E-step and expected counts of one block."""
        if not isinstance(state, _State):  # nobody is in a group: Dawid-Skene's own step
            return super().local_step(block, state, params)
        log_transfer = params.extra["log_transfer"]
        said, message = _messages(block, state.opinions, params.table, log_transfer)
        value = self._posterior_of(block, state, message, params.log_class)
        opinions, rows = state.opinions, state.opinions.shared
        belief = state.probas[opinions.task]  # (n_opinions, K): of what the group says
        group, transfer = opinions.group[rows], np.zeros_like(log_transfer)
        q, heard = belief[rows], np.zeros((len(rows), said.shape[1]))
        for k in range(said.shape[1]):
            joint = np.exp(log_transfer[group, k] + said[rows] - message[rows, k, None])
            joint *= q[:, k, None]
            heard += joint
            _add_rows(transfer[:, k], group, joint)
        belief[rows] = heard
        counts = np.zeros_like(params.table)
        _add_counts(block, opinions, belief, counts)
        mass = state.probas[np.diff(block.indptr) > 0].sum(axis=0)
        return state, _Stats(counts, transfer, mass, value)

    def global_step(self, stats: Any, params: Params | None) -> Params:
        """M-step."""
        if not isinstance(stats, _Stats):
            return super().global_step(stats, params)
        log_confusion, log_prior = dirichlet_update(as_confusion(stats.counts), self._alpha)
        log_transfer, more = dirichlet_update(stats.transfer, self._group_alpha)
        extra = {"log_transfer": log_transfer}
        log_class = self._class_update(stats.mass)
        return Params(as_table(log_confusion), log_class, log_prior + more, extra)

    def _posterior_of(
        self, block: Block, state: _State, message: Floats, log_class: Floats
    ) -> float:
        """Fill the posteriors of a block and return its log-likelihood."""
        prior = block.prior_rows[0 if block.prior_index is None else block.prior_index]
        scores = state.opinions.by_task(message) + log_class + prior
        state.probas[:], log_z = log_normalise(scores)
        return float(log_z[np.diff(block.indptr) > 0].sum())

    # --------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> FitResult:
        labels, prior, rng = problem.data, problem.prior, problem.rng
        groups = groups_of(self.groups, labels)
        if groups.max(initial=-1) < 0:
            result = super()._fit(problem)
            empty = np.empty((0, labels.n_classes, labels.n_classes))
            result.extra.update(
                group=groups, group_confusion=empty, member_confusion=result.confusion
            )
            return result
        J, K = labels.n_workers, labels.n_classes
        require_memory(
            8 * (6 * J * K * K + 6 * labels.n_annotations * K),
            f"GroupAwareDawidSkene with {J} workers and {K} classes would",
            "use group-aware-majority-vote, which needs no matrices",
        )
        self._class_ids = labels.classes
        self._prepare(labels.workers, K)
        self._fixed_class = fixed_class_prior(self.class_prior, prior, K)
        engine = problem.cut(J * K * K)
        opinions = [Opinions.of(block, groups, K) for block in engine.shards()]
        start = problem.start

        def attempt(number: int) -> Run:
            probas = np.empty((labels.n_tasks, K))
            states = [
                _State(of_block, probas[block.tasks])
                for of_block, block in zip(opinions, engine.shards(), strict=True)
            ]
            noise = rng if number > 0 else None
            params = self._start_from(engine, states, int(groups.max()) + 1, J, start, noise)
            return run(self, engine, params, max_iter=self.max_iter, tol=self.tol, states=states)

        return self._group_result(labels, engine, best_of(attempt, self.n_init), groups)

    def _start_from(
        self, engine: MemoryShards, states: list[_State], n_groups: int, n_workers: int,
        given: Floats | None, rng: np.random.Generator | None,
    ) -> Params:  # fmt: skip
        """M-step from a starting posterior; a group's opinion starts as its own soft vote."""
        K = states[0].probas.shape[1]
        counts, transfer = np.zeros((n_workers * K, K)), np.zeros((n_groups, K, K))
        mass = np.zeros(K)
        for block, state in zip(engine.shards(), states, strict=True):
            opinions, rows = state.opinions, state.opinions.shared
            votes = opinions.fused_votes(hard=False)
            labelled = votes.sum(axis=1) > 0
            votes[~labelled] = 1.0
            q = votes / votes.sum(axis=1, keepdims=True)
            q = condition(q if given is None else given[block.tasks], block)
            if rng is not None:
                q = condition(perturbed(q, rng), block)
            belief = q[opinions.task]
            shares = opinions.votes[rows] / opinions.votes[rows].sum(axis=1, keepdims=True)
            for k in range(K):
                _add_rows(transfer[:, k], opinions.group[rows], belief[rows, k, None] * shares)
            belief[rows] = shares
            _add_counts(block, opinions, belief, counts)
            mass += q[labelled].sum(axis=0)
        return self.global_step(_Stats(counts, transfer, mass, 0.0), None)

    def _group_result(
        self, labels: CrowdLabels, engine: MemoryShards, best: Run, groups: Codes
    ) -> FitResult:
        params, probas = best.params, best.states[0].probas.base
        member = np.exp(as_confusion(params.table))
        of_group = np.exp(params.extra["log_transfer"])
        confusion = _marginal(member, of_group, groups)
        class_prior = np.exp(params.log_class)
        class_prior = class_prior / class_prior.sum()
        counts = np.zeros_like(params.table)
        for block in engine.shards():
            block.kernels("confusion").add_counts(
                block.indptr, block.cell, block.weight, probas[block.tasks], counts
            )
        accuracy, error = accuracy_of(confusion, class_prior, as_confusion(counts).sum(axis=2))
        return FitResult(
            probas,
            accuracy,
            error,
            class_prior=class_prior,
            confusion=confusion,
            n_iter=best.n_iter,
            converged=best.converged,
            history=best.history,
            extra={"group": groups, "group_confusion": of_group, "member_confusion": member},
        )

    # ----------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Floats:
        return self._known_posterior_of(problem)[0]

    def _log_likelihood(self, problem: Problem) -> float:
        return self._known_posterior_of(problem)[1]

    def _known_posterior_of(self, problem: Problem) -> tuple[Floats, float]:
        """Return the posterior (n_tasks, K) of tasks under the fit, and their log-likelihood."""
        labels = problem.data
        K, extra = labels.n_classes, labels.n_workers - len(self.group_)
        unknown = np.full((extra, K, K), 1 / K)
        groups = np.append(self.group_, np.full(extra, -1, dtype=np.int32))
        table = as_table(safe_log(np.concatenate([self.member_confusion_, unknown])))
        log_transfer = safe_log(self.group_confusion_)
        log_class = known_class_prior(self.class_prior, problem.prior, self.class_prior_)
        probas, total = np.empty((labels.n_tasks, K)), 0.0
        for block in problem.cut(table.size).shards():
            state = _State(Opinions.of(block, groups, K), probas[block.tasks])
            message = _messages(block, state.opinions, table, log_transfer)[1]
            total += self._posterior_of(block, state, message, log_class)
        return probas, total


def _messages(
    block: Block, opinions: Opinions, table: Floats, log_transfer: Floats
) -> tuple[Floats, Floats]:
    """Return the log-likelihoods (n_opinions, K) of the opinion, and of the class through it."""
    rows = slice(block.indptr[0], block.indptr[-1])
    cell, n = block.cell[rows], len(opinions.task)
    weight = None if block.weight is None else block.weight[rows]
    said = np.empty((n, table.shape[1]))
    for c in range(table.shape[1]):
        values = table[cell, c] if weight is None else weight * table[cell, c]
        said[:, c] = np.bincount(opinions.of_annotation, values, n)
    message, shared = said.copy(), opinions.shared
    group = opinions.group[shared]
    for k in range(table.shape[1]):
        message[shared, k] = log_normalise(log_transfer[group, k] + said[shared])[1]
    return said, message


def _add_counts(block: Block, opinions: Opinions, belief: Floats, counts: Floats) -> None:
    """Add expected counts (J·K, K) of beliefs (n_opinions, K) in what the workers report."""
    rows = slice(block.indptr[0], block.indptr[-1])
    weight = None if block.weight is None else block.weight[rows]
    for c in range(belief.shape[1]):
        values = belief[opinions.of_annotation, c]
        values = values if weight is None else weight * values
        counts[:, c] += np.bincount(block.cell[rows], values, len(counts))


def _add_rows(total: Floats, index: NDArray[np.int64], values: Floats) -> None:
    """Add rows of values (n, K) to those of ``total`` (G, K) that ``index`` names."""
    for c in range(values.shape[1]):
        total[:, c] += np.bincount(index, values[:, c], len(total))


def _marginal(member: Floats, of_group: Floats, groups: Codes) -> Floats:
    """Return p(label | class) (J, K, K): through the group's opinion for its members."""
    confusion, inside = member.copy(), groups >= 0
    confusion[inside] = np.matmul(of_group[groups[inside]], member[inside])
    return confusion
