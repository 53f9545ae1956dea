r"""Workers integrated out: the factors of belief propagation as sums over nodes.

The factor of worker ``j`` couples all its tasks,

.. math:: g_j(z) = \int p(\theta_j) \prod_{i \in j} \theta_j[z_i, y_{ij}] \, d\theta_j,

and is approximated by a finite sum over the nodes of the prior's integration rule, which is exact
for some priors and degrees. Rules of other workers are centred on their posteriors. Node sums per
worker add up over shards of tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.problem import Problem
from wisecrowd.core.types import Floats, Longs
from wisecrowd.inference.engine import MemoryShards
from wisecrowd.inference.loop import LoopResult
from wisecrowd.inference.quadrature import Rule
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.posteriors import worker_weights
from wisecrowd.kinds.classes.families.worker_prior import WorkerPrior, coin_matrices
from wisecrowd.kinds.classes.kernels.belief_propagation import Edges
from wisecrowd.kinds.classes.shards import Shard

if TYPE_CHECKING:
    from wisecrowd.kinds.classes.methods.belief_propagation import MessageModel, MessageParams

MAX_WEIGHT = 500.0  # largest power of 1/2 that does not risk underflow
WORKERS_AT_ONCE = 1 << 15


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

    rule_start: Longs
    node_start: Longs
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


def starts_edge(indptr: Longs, worker: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return whether each annotation is the first of its (task, worker) pair."""
    new = np.ones(len(worker), dtype=bool)
    new[1:] = worker[1:] != worker[:-1]
    new[indptr[:-1][np.diff(indptr) > 0]] = True
    return new


def find_edges(indptr: Longs, worker: NDArray[np.int32]) -> Edges:
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


def label_weights(labels: CrowdLabels) -> NDArray[np.int64]:
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
