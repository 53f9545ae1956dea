r"""Sum-product messages between tasks and workers, in NumPy: the specification.

A worker is integrated over nodes :math:`\theta^{(s)}` with weights :math:`\omega_s`. With
:math:`m_e` the message of edge ``e``'s task to its worker and :math:`f_s(k)` the likelihood of the
edge's labels at node ``s``,

.. math::
    A_{es} = \log \sum_k m_e(k) f_s(k), \qquad T_{js} = \log\omega_s + \sum_{e \in j} A_{es}, \qquad
    \mu_e(k) \propto \sum_s e^{T_{js} - A_{es}} f_s(k).

``T`` adds up over tasks; the worker-to-task messages are the only state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels.arguments import TaskLabels, TaskPriors
from wisecrowd.kinds.classes.kernels.posteriors import log_normalise

BUDGET = 2_000_000  # numbers in one temporary


class WorkerNodes(NamedTuple):
    """The nodes of the integration over workers; workers share rules.

    Attributes
    ----------
    rule_start : (J,) start of the rule of worker ``j`` in ``values``
    node_start : (J + 1,) start of its part of ``share``
    values : (n,) accuracies or (n, L, K) confusion matrices, true class last
    share : (node_start[-1],) :math:`e^{T_{js}}` up to a factor per worker
    """

    rule_start: Ints
    node_start: Ints
    values: Floats
    share: Floats


class Edges(NamedTuple):
    """One edge per (task, worker) pair; a worker may have labelled a task several times.

    ``indptr`` points from tasks to edges, ``start`` from edges to annotations.
    """

    indptr: Ints
    start: Ints
    worker: Ints


class MessageOutput(NamedTuple):
    """Output arrays of a round.

    Attributes
    ----------
    message : (E,) or (E, K)
        Read, and replaced if the round updates messages.
    node_sums, mass : (node_start[-1],) and (K,)
        Incremented by the node terms of the tasks, and by their class probabilities.
    probas : (n, K) or None
        Filled with the beliefs.
    """

    message: Floats
    node_sums: Floats
    mass: Floats
    probas: Floats | None


def _expand(worker: Ints, nodes: WorkerNodes) -> tuple[Ints, Ints, Ints]:
    """Return (edge, node of the rule, node of the worker) of every (edge, node) pair."""
    sizes = np.diff(nodes.node_start)[worker]
    edge = np.repeat(np.arange(len(worker)), sizes)
    within = np.arange(len(edge)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return edge, nodes.rule_start[worker][edge] + within, nodes.node_start[worker][edge] + within


def _task_of(indptr: Ints) -> Ints:
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def _log_priors(priors: TaskPriors, n: int) -> Floats:
    rows = priors.rows[0] if priors.row_of is None else priors.rows[priors.row_of]
    return np.broadcast_to(priors.log_class + rows, (n, len(priors.log_class)))


def _slices(n_edges: int, numbers_per_node: int, nodes: WorkerNodes) -> list[slice]:
    """Return ranges of edges whose temporaries fit the budget."""
    per_edge = numbers_per_node * len(nodes.share) / max(len(nodes.rule_start), 1)
    size = max(1, int(BUDGET / max(per_edge, 1.0)))
    return [slice(a, min(a + size, n_edges)) for a in range(0, n_edges, size)]


def coin_messages(
    labels: TaskLabels,
    priors: TaskPriors,
    nodes: WorkerNodes,
    output: MessageOutput,
    damping: float,
    tol: float,
    update: bool,
) -> tuple[float, int]:
    """Run one round of messages for one-coin workers, where every annotation is an edge.

    A message (E,) is the log-ratio of the edge's label against any other class, and the nodes are
    accuracies. Without ``update`` the messages stay fixed, and only the sums are computed. Returns
    the tasks' part of the Bethe free energy and the number of messages that moved.
    """
    worker, label, message = labels.worker, labels.label, output.message
    task = _task_of(labels.indptr)
    right = nodes.values
    wrong = (1 - right) / max(len(priors.log_class) - 1, 1)
    w = np.ones(len(worker)) if labels.weight is None else labels.weight
    prior = _log_priors(priors, len(labels.indptr) - 1)
    parts = _slices(len(worker), 1, nodes)
    moved = 0
    if update:
        new = np.empty_like(message)
        outside = _own_class(task, label, message, prior)[0]
        for some in parts:
            edge, at_rule, at_node = _expand(worker[some], nodes)
            power = w[some][edge]
            p, q = right[at_rule] ** power, wrong[at_rule] ** power
            x = outside[some][edge]
            ratio = nodes.share[at_node] / (p * x + q * (1 - x))
            size = len(outside[some])
            new[some] = np.log(np.bincount(edge, ratio * p, size)) - np.log(
                np.bincount(edge, ratio * q, size)
            )
        new = damping * message + (1 - damping) * new
        # A quarter of the change of a log-ratio bounds the change of the probability.
        moved = int((0.25 * np.abs(new - message) > tol).sum())
        message[:] = new
    outside, scores = _own_class(task, label, message, prior)
    for some in parts:
        edge, at_rule, at_node = _expand(worker[some], nodes)
        power = w[some][edge]
        p, q = right[at_rule] ** power, wrong[at_rule] ** power
        x = outside[some][edge]
        values = np.log(p * x + q * (1 - x))
        output.node_sums[:] += np.bincount(at_node, values, len(output.node_sums))
    up, down = np.minimum(message, 0.0), np.maximum(message, 0.0)
    edges = down + np.log(outside * np.exp(up) + (1 - outside) * np.exp(-down))
    return _add_beliefs(scores, prior, np.diff(labels.indptr) > 0, output) - float(
        edges.sum()
    ), moved


def _add_beliefs(
    scores: Floats, prior: Floats, labelled: NDArray[np.bool_], output: MessageOutput
) -> float:
    """Add the tasks' beliefs to the output; return the log evidence of labelled tasks."""
    q, log_z = log_normalise(scores)
    output.mass[:] += q[labelled].sum(axis=0)
    if output.probas is not None:
        output.probas[:] = q
    log_prior = log_normalise(np.array(prior))[1]
    return float((log_z - log_prior)[labelled].sum())


def _own_class(task: Ints, label: Ints, message: Floats, prior: Floats) -> tuple[Floats, Floats]:
    """Return the cavity probability of each edge's label (E,), and the tasks' scores (n, K)."""
    n, K = prior.shape
    votes = np.bincount(task * K + label, message, n * K).reshape(n, K)
    scores = prior + votes
    # The cavity is the task's scores without this edge's message.
    cavity = scores[task]
    cavity[np.arange(len(task)), label] -= message
    return log_normalise(cavity)[0][np.arange(len(task)), label], scores


def matrix_messages(
    edges: Edges,
    labels: TaskLabels,
    priors: TaskPriors,
    nodes: WorkerNodes,
    output: MessageOutput,
    damping: float,
    tol: float,
    update: bool,
) -> tuple[float, int]:
    """Run one round of messages for workers with confusion matrices; see :func:`coin_messages`.

    A message (E, K) is a log vector with maximum 0, and the nodes are confusion matrices.
    """
    worker, message, K = edges.worker, output.message, len(priors.log_class)
    task = _task_of(edges.indptr)
    prior = _log_priors(priors, len(edges.indptr) - 1)
    parts = _slices(len(worker), K, nodes)
    moved = 0
    if update:
        new = np.empty_like(message)
        outside = _cavity(task, message, prior)[0]
        for some in parts:
            edge, at_rule, at_node = _expand(worker[some], nodes)
            f = _factor(edges.start[some.start : some.stop + 1], edge, at_rule, labels, nodes)
            ratio = nodes.share[at_node] / (f * outside[some][edge]).sum(axis=1)
            size = len(worker[some])
            for k in range(K):
                new[some, k] = np.bincount(edge, ratio * f[:, k], size)
        new = np.log(new)
        new = damping * message + (1 - damping) * (new - new.max(axis=1, keepdims=True))
        new -= new.max(axis=1, keepdims=True)
        change = np.abs(log_normalise(new)[0] - log_normalise(message)[0]).max(axis=1)
        moved = int((change > tol).sum())
        message[:] = new
    outside, scores = _cavity(task, message, prior)
    for some in parts:
        edge, at_rule, at_node = _expand(worker[some], nodes)
        f = _factor(edges.start[some.start : some.stop + 1], edge, at_rule, labels, nodes)
        values = np.log((f * outside[some][edge]).sum(axis=1))
        output.node_sums[:] += np.bincount(at_node, values, len(output.node_sums))
    agree = np.log((np.exp(message) * outside).sum(axis=1))
    return _add_beliefs(scores, prior, np.diff(edges.indptr) > 0, output) - float(
        agree.sum()
    ), moved


def _cavity(task: Ints, message: Floats, prior: Floats) -> tuple[Floats, Floats]:
    """Return the normalised cavity messages (E, K) and the tasks' log scores (n, K)."""
    scores = np.array(prior)
    for k in range(prior.shape[1]):
        scores[:, k] += np.bincount(task, message[:, k], len(prior))
    return log_normalise(scores[task] - message)[0], scores


def _factor(
    start: Ints, edge: Ints, at_rule: Ints, labels: TaskLabels, nodes: WorkerNodes
) -> Floats:
    """Return the likelihood (pairs, K) of each edge's labels at each node of its worker."""
    label, weight = labels.label, labels.weight
    f = np.ones((len(edge), nodes.values.shape[2]))
    for repeat in range(int(np.diff(start).max(initial=1))):
        row = start[:-1] + repeat
        has = row < start[1:]
        pairs = has[edge]
        at = row[edge[pairs]]
        value = nodes.values[at_rule[pairs], label[at]]
        f[pairs] *= value if weight is None else value ** weight[at][:, None]
    return f
