r"""Belief propagation between tasks and workers, with confusion matrices integrated out.

The factor of worker ``j`` couples all its tasks,

.. math:: g_j(z) = \int p(\theta_j) \prod_{i \in j} \theta_j[z_i, y_{ij}] \, d\theta_j,

and is approximated by a finite sum over the nodes of the prior's integration rule, which is exact
for some priors and degrees. Node sums per worker add up over shards of tasks. The messages from
workers to tasks are the state of a shard.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.problem import Problem
from wisecrowd.engines.memory import MemoryShards, Shard
from wisecrowd.engines.packed_shard import PackedCrowd
from wisecrowd.families.sparse_posterior import worker_weights
from wisecrowd.inference.class_prior import log_shares
from wisecrowd.inference.loop import LoopResult
from wisecrowd.inference.quadrature import Rule
from wisecrowd.inference.worker_prior import WorkerPrior, coin_matrices
from wisecrowd.kernels import kernels_for
from wisecrowd.kernels.arguments import TaskPriors
from wisecrowd.kernels.belief_propagation.reference import Edges, MessageOutput, WorkerNodes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_WEIGHT = 500.0  # largest power of 1/2 that does not risk underflow
WORKERS_AT_ONCE = 1 << 15
TERMS_PER_ANNOTATION = 2  # terms per annotation above which compiled code pays off


@dataclass(frozen=True, eq=False)
class Nodes:
    """The integration rules of all workers, concatenated.

    Attributes
    ----------
    rule_start : (J,) start of worker ``j``'s rule in ``values``
    node_start : (J + 1,) start of worker ``j``'s node sums
    values : (n,) accuracies or (n, L, K) confusion matrices with the true class last
    log_weight : (node_start[-1],) log weights, one copy per worker
    """

    rule_start: Ints
    node_start: Ints
    values: Floats
    log_weight: Floats

    @classmethod
    def build(cls, rules: list[Rule], rule_of: NDArray[np.integer[Any]]) -> Nodes:
        """Concatenate distinct rules and store which worker uses which."""
        sizes = np.array([len(rule.log_weight) for rule in rules])
        starts = np.cumsum(sizes) - sizes
        node_start = np.concatenate([[0], np.cumsum(sizes[rule_of])]).astype(np.int64)
        values = np.concatenate([rule.nodes for rule in rules])
        if values.ndim == 3:
            values = np.ascontiguousarray(values.transpose(0, 2, 1))
        weights = np.concatenate([rules[r].log_weight for r in rule_of])
        return cls(starts[rule_of].astype(np.int64), node_start, values, weights)

    def per_worker(self, sums: Floats) -> tuple[Floats, Floats]:
        """Return each worker's node shares (nodes,) with maximum 1, and log evidence (J,)."""
        share = sums + self.log_weight
        begin = self.node_start[:-1]
        top = np.maximum.reduceat(share, begin)
        share -= np.repeat(top, np.diff(self.node_start))
        np.exp(share, out=share)
        return share, top + np.log(np.add.reduceat(share, begin))

    def mean(self, share: Floats, n_classes: int) -> Floats:
        """Return the posterior mean (J, K, K) of the confusion.

        Processes workers in batches: all nodes at once would take most of a fit's memory.
        """
        n_workers = len(self.rule_start)
        confusion = np.empty((n_workers, n_classes, n_classes))
        for first in range(0, n_workers, WORKERS_AT_ONCE):
            some = slice(first, min(first + WORKERS_AT_ONCE, n_workers))
            start = self.node_start[first : some.stop + 1]
            begin, sizes = start[:-1] - start[0], np.diff(start)
            mine = share[start[0] : start[-1]]
            weight = mine / np.repeat(np.add.reduceat(mine, begin), sizes)
            at = np.repeat(self.rule_start[some] - begin, sizes) + np.arange(len(mine))
            if self.values.ndim == 1:
                p = self.values[at]
                mean = np.add.reduceat(weight * p, begin)
                confusion[some] = coin_matrices(mean, n_classes)
                continue
            for k, given in np.ndindex(n_classes, n_classes):
                theta = self.values[at, given, k]
                confusion[some, k, given] = np.add.reduceat(weight * theta, begin)
        return confusion


class MessageStats(NamedTuple):
    """Additive: node sums (nodes,), class mass (K,), evidence of the tasks, moved messages."""

    node_sums: Floats
    mass: Floats
    evidence: float
    moved: int


@dataclass(frozen=True, eq=False)
class MessageParams:
    """Node shares of all workers and log class prior; ``update`` is False for a pass of sums."""

    nodes: Nodes
    share: Floats
    log_class: Floats
    update: bool = True


class MessageState(NamedTuple):
    """Edges (task, worker) of a shard, None if they are found at every pass, and their messages."""

    edges: Edges | None
    message: Floats


class SurveyStats(NamedTuple):
    """Additive: number of labels (J,), of repeated pairs (task, worker), and of large weights."""

    labels: Floats
    n_repeated: int
    n_heavy: int


class CountStats(NamedTuple):
    """Additive: expected counts (n·K, K) of some workers, by label and class."""

    counts: Floats


class CountParams(NamedTuple):
    """Parameters, and the place (J,) of each worker among those to count, -1 for the others."""

    params: MessageParams
    place: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Survey:
    """Looks at the labels before messages are sent."""

    n_workers: int

    def begin(self, shard: Shard) -> None:
        """Return nothing: there is no state."""

    def local_step(self, shard: Shard, state: None, params: None) -> tuple[None, SurveyStats]:
        """Return the sums of one shard."""
        counts = np.bincount(shard.worker, minlength=self.n_workers).astype(np.float64)
        repeated = int(np.count_nonzero(~starts_edge(shard.indptr, shard.worker)))
        heavy = 0 if shard.weight is None else int(np.count_nonzero(shard.weight > MAX_WEIGHT))
        return None, SurveyStats(counts, repeated, heavy)


@dataclass(frozen=True, eq=False, kw_only=True)
class MessageModel:
    """Belief propagation.

    Attributes
    ----------
    n_classes : int
    coin : bool
        Whether a message is one log-ratio per annotation (one-coin workers who labelled no task
        twice) or a log vector (K,) per edge.
    damping, tol : float
    estimate_class : bool
        Whether the class prior is estimated from the beliefs.
    n_terms : int
        Number of (edge, node, class) terms in a round over all shards; many need compiled kernels.
    keeps_edges : bool
        Whether edges stay in memory with the states; files keep the messages only.
    """

    n_classes: int
    coin: bool
    damping: float
    tol: float
    estimate_class: bool
    n_terms: int
    keeps_edges: bool = True
    stateful: ClassVar[bool] = True
    reads: ClassVar[tuple[str, ...]] = ("sum_nodes", "expect")

    def begin(self, shard: Shard) -> MessageState:
        """Return the edges of a shard, with uniform messages."""
        if self.coin:
            return MessageState(None, np.zeros(len(shard.worker)))
        edges = find_edges(shard.indptr, shard.worker)
        messages = np.zeros((len(edges.worker), self.n_classes))
        return MessageState(edges if self.keeps_edges else None, messages)

    def local_step(
        self, shard: Shard, state: MessageState, params: MessageParams
    ) -> tuple[MessageState, MessageStats]:
        """Replace the messages of one shard, in place, and sum the node terms of its tasks."""
        return state, self._round(shard, state, params, None)

    def sum_nodes(
        self, shard: Shard, state: MessageState, params: MessageParams
    ) -> tuple[MessageState, MessageStats]:
        """Sum the node terms of one shard; its messages stay."""
        return state, self._round(shard, state, replace(params, update=False), None)

    def expect(
        self, shard: Shard, state: MessageState, params: CountParams
    ) -> tuple[MessageState, CountStats]:
        """Return the expected counts of some workers under the beliefs of one shard."""
        probas, _ = self.answer(shard, state, params.params)
        return state, CountStats(expected_counts(shard, probas, params.place))

    def answer(
        self, shard: Shard, state: MessageState, params: MessageParams
    ) -> tuple[Floats, MessageStats]:
        """Return the beliefs (n, K) given by the messages of one shard."""
        probas = np.empty((shard.n_tasks, self.n_classes))
        return probas, self._round(shard, state, replace(params, update=False), probas)

    def _round(
        self, shard: Shard, state: MessageState, params: MessageParams, probas: Floats | None
    ) -> MessageStats:
        sums, mass = np.zeros(len(params.share)), np.zeros(self.n_classes)
        nodes = params.nodes
        arguments = (
            shard.task_labels,
            TaskPriors(params.log_class, shard.prior_rows, shard.prior_index),
            WorkerNodes(nodes.rule_start, nodes.node_start, nodes.values, params.share),
            MessageOutput(state.message, sums, mass, probas),
            self.damping,
            self.tol,
            params.update,
        )
        kernels = kernels_for("belief_propagation", self.n_terms // TERMS_PER_ANNOTATION)
        if self.coin:
            evidence, moved = kernels.coin_messages(*arguments)
        else:
            edges = state.edges or find_edges(shard.indptr, shard.worker)
            evidence, moved = kernels.matrix_messages(edges, *arguments)
        return MessageStats(sums, mass, evidence, moved)

    def global_step(self, stats: MessageStats, params: MessageParams) -> MessageParams:
        """Convert node sums to node shares."""
        share, _ = params.nodes.per_worker(stats.node_sums)
        log_class = log_shares(stats.mass) if self.estimate_class else params.log_class
        return replace(params, share=share, log_class=log_class, update=True)

    def objective(self, stats: MessageStats, params: MessageParams) -> float:
        """Return the Bethe approximation of the log evidence, which is exact on trees."""
        return float(params.nodes.per_worker(stats.node_sums)[1].sum() + stats.evidence)

    def extrapolate(self, first: Any, second: Any, third: Any) -> None:
        """Return None: messages are not extrapolated."""

    def settled(self, stats: MessageStats, params: MessageParams) -> bool:
        """Return whether no message moved by more than the tolerance."""
        return params.update and stats.moved == 0


def starts_edge(indptr: Ints, worker: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return whether each annotation is the first of its (task, worker) pair."""
    new = np.ones(len(worker), dtype=bool)
    new[1:] = worker[1:] != worker[:-1]
    new[indptr[:-1][np.diff(indptr) > 0]] = True
    return new


def find_edges(indptr: Ints, worker: NDArray[np.int32]) -> Edges:
    """Return the distinct (task, worker) pairs of the annotations of tasks."""
    new = starts_edge(indptr, worker)
    start = np.append(np.flatnonzero(new), len(new)).astype(np.int64)
    before = np.concatenate([[0], np.cumsum(new)])
    return Edges(before[indptr].astype(np.int64), start, worker[start[:-1]])


def survey(problem: Problem) -> SurveyStats:
    """Return sums over all labels, and refuse weights under which a message would underflow."""
    model, shards = Survey(problem.data.n_workers), problem.cut(problem.data.n_workers)
    found: SurveyStats = shards.map_reduce(model, "local_step", shards.begin(model), None)[1]
    if found.n_heavy:
        raise DataError(
            f"{found.n_heavy} of the weights are more than messages can carry, which is "
            f"{MAX_WEIGHT:g} per label; scale the weights down, or use dawid-skene."
        )
    return found


def rules_for(
    prior: WorkerPrior, degrees: NDArray[np.integer[Any]], n_classes: int, size: int
) -> tuple[list[Rule], NDArray[np.intp]]:
    """Return the distinct rules by number of labels, and the rule of each worker."""
    distinct, rule_of = np.unique(degrees, return_inverse=True)
    rules = [prior.rule(int(max(d, 1)), n_classes, size=size) for d in distinct]
    return rules, rule_of


# ---------------------------------------------------------------- rules centred on the posterior


def label_weights(labels: CrowdLabels | PackedCrowd) -> NDArray[np.int64]:
    """Return the degree of each worker's factor (J,): the weighted number of labels."""
    return np.asarray(np.ceil(worker_weights(labels) - 1e-9), dtype=np.int64)


def inexact_workers(
    prior: WorkerPrior, degrees: NDArray[np.int64], n_classes: int
) -> NDArray[np.intp]:
    """Return the workers with too many labels for an exact rule."""
    distinct, index = np.unique(degrees, return_inverse=True)
    exact = np.array([prior.exact(int(d), n_classes) for d in distinct])
    return np.flatnonzero(~exact[index])


def expected_counts(shard: Shard, probas: Floats, place: NDArray[np.intp]) -> Floats:
    """Return the expected counts (n·K, K) of the workers with a ``place`` (J,), by label."""
    K = probas.shape[1]
    mine = np.flatnonzero(place[shard.worker] >= 0)
    task = np.repeat(np.arange(shard.n_tasks), np.diff(shard.indptr))[mine]
    row = place[shard.worker[mine]] * K + shard.label[mine]
    weight = 1.0 if shard.weight is None else shard.weight[mine]
    counts = np.empty(((int(place.max()) + 1) * K, K))
    for k in range(K):
        counts[:, k] = np.bincount(row, probas[task, k] * weight, len(counts))
    return counts


def counts_of(
    model: MessageModel, shards: MemoryShards, done: LoopResult, workers: NDArray[np.intp]
) -> Floats:
    """Return the expected counts (len(workers), K, K) of some workers, true class second."""
    place = np.full(len(done.params.nodes.rule_start), -1)
    place[workers] = np.arange(len(workers))
    wanted = CountParams(done.params, place)
    found: CountStats = shards.map_reduce(model, "expect", done.states, wanted)[1]
    K = model.n_classes
    return found.counts.reshape(-1, K, K).transpose(0, 2, 1)


def centred_nodes(
    prior: WorkerPrior,
    rules: list[Rule],
    rule_of: NDArray[np.intp],
    workers: NDArray[np.intp],
    counts: Floats,
    size: int,
    coin: bool,
) -> Nodes:
    """Return nodes in which the given workers have rules centred on their posteriors.

    Coins with similar numbers of labels and accuracies share a rule. Its exact position does not
    matter, because it is reweighted to the prior.
    """
    K = counts.shape[1]
    total = counts.sum(axis=(1, 2))
    if prior.coin:
        accuracy = np.trace(counts, axis1=1, axis2=2) / total
        keys = np.stack([np.round(4 * np.log2(total)), np.round(50 * accuracy)], axis=1)
        _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    else:
        first = group = np.arange(len(workers))
    added = [prior.rule(int(total[i]), K, counts[i], size) for i in first]
    if prior.coin and not coin:
        added = [Rule(coin_matrices(rule.nodes, K), rule.log_weight) for rule in added]
    rule_of = rule_of.copy()
    rule_of[workers] = len(rules) + group.reshape(-1)
    return Nodes.build(rules + added, rule_of)


def log_evidence(
    model: MessageModel, shards: MemoryShards, done: LoopResult, nodes: Nodes
) -> tuple[Floats, MessageParams]:
    """Return each worker's log evidence (J,) at other nodes, with the messages fixed."""
    params = replace(done.params, nodes=nodes, share=np.exp(nodes.log_weight), update=False)
    _, stats = shards.map_reduce(model, "sum_nodes", done.states, params)
    share, evidence = nodes.per_worker(stats.node_sums)
    return evidence, replace(params, share=share, update=True)
