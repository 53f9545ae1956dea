r"""Sum-product messages between tasks and workers, in NumPy: the specification.

A worker is integrated over nodes :math:`\theta^{(s)}` with weights :math:`\omega_s`. With
:math:`m_e` the message of edge ``e``'s task to its worker and :math:`f_s(k)` the likelihood of the
edge's labels at node ``s``,

.. math::
    A_{es} = \log \sum_k m_e(k) f_s(k), \qquad T_{js} = \log\omega_s + \sum_{e \in j} A_{es}, \qquad
    \mu_e(k) \propto \sum_s e^{T_{js} - A_{es}} f_s(k).

``T`` adds up over tasks; the worker-to-task messages are the only state. Workers share rules: the
nodes of worker ``j`` are ``rule_start[j]`` onwards, and its own weights ``node_start[j]`` to
``node_start[j + 1]`` of ``share``, which holds :math:`e^{T_{js}}` up to a factor per worker.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.kernels.posteriors import log_normalise

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

BUDGET = 2_000_000  # numbers in one temporary


def _expand(worker: Ints, rule_start: Ints, node_start: Ints) -> tuple[Ints, Ints, Ints]:
    """Return (edge, node of the rule, node of the worker) of every (edge, node) pair."""
    sizes = (node_start[1:] - node_start[:-1])[worker]
    edge = np.repeat(np.arange(len(worker)), sizes)
    within = np.arange(len(edge)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return edge, rule_start[worker][edge] + within, node_start[worker][edge] + within


def _task_of(indptr: Ints) -> Ints:
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def _prior(log_class: Floats, prior_rows: Floats, prior_index: Ints | None, n: int) -> Floats:
    rows = prior_rows[0] if prior_index is None else prior_rows[prior_index]
    return np.broadcast_to(log_class + rows, (n, len(log_class)))


def _slices(n_edges: int, per_edge: float) -> list[slice]:
    size = max(1, int(BUDGET / max(per_edge, 1.0)))
    return [slice(a, min(a + size, n_edges)) for a in range(0, n_edges, size)]


def coin_messages(
    indptr: Ints,
    worker: Ints,
    label: Ints,
    weight: Floats | None,
    log_class: Floats,
    prior_rows: Floats,
    prior_index: Ints | None,
    rule_start: Ints,
    node_start: Ints,
    right: Floats,
    wrong: Floats,
    share: Floats,
    message: Floats,
    node_sums: Floats,
    mass: Floats,
    probas: Floats | None,
    damping: float,
    tol: float,
    update: bool,
) -> tuple[float, int]:
    """One round of messages for one-coin workers: one log-ratio per edge, in place.

    ``message[e]`` is the log-ratio of the edge's label against any other class; ``right`` and
    ``wrong`` are the probabilities of the given label on its class and on another, at each node.
    Without ``update`` the messages stay, and only the sums are taken. Adds to ``node_sums`` and
    ``mass``; returns the tasks' part of the Bethe free energy and how many messages moved.
    """
    task, n = _task_of(indptr), len(indptr) - 1
    rows = slice(indptr[0], indptr[-1])
    worker, label = worker[rows], label[rows]
    w = np.ones(len(worker)) if weight is None else weight[rows]
    prior = _prior(log_class, prior_rows, prior_index, n)
    parts = _slices(len(worker), len(share) / max(len(node_start) - 1, 1))
    moved = 0
    if update:
        new = np.empty_like(message)
        outside = _own_class(task, label, message, prior)[0]
        for some in parts:
            edge, at_rule, at_node = _expand(worker[some], rule_start, node_start)
            power = w[some][edge]
            p, q = right[at_rule] ** power, wrong[at_rule] ** power
            x = outside[some][edge]
            ratio = share[at_node] / (p * x + q * (1 - x))
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
        edge, at_rule, at_node = _expand(worker[some], rule_start, node_start)
        power = w[some][edge]
        p, q = right[at_rule] ** power, wrong[at_rule] ** power
        x = outside[some][edge]
        node_sums += np.bincount(at_node, np.log(p * x + q * (1 - x)), len(node_sums))
    q, log_z = log_normalise(scores)
    labelled = np.diff(indptr) > 0
    mass += q[labelled].sum(axis=0)
    if probas is not None:
        probas[:] = q
    up, down = np.minimum(message, 0.0), np.maximum(message, 0.0)
    edges = down + np.log(outside * np.exp(up) + (1 - outside) * np.exp(-down))
    log_prior = log_normalise(np.array(prior))[1]
    return float((log_z - log_prior)[labelled].sum() - edges.sum()), moved


def _own_class(task: Ints, label: Ints, message: Floats, prior: Floats) -> tuple[Floats, Floats]:
    """Return the cavity probability of each edge's label (E,), and the tasks' scores (n, K)."""
    n, K = prior.shape
    votes = np.bincount(task * K + label, message, n * K).reshape(n, K)
    scores = prior + votes
    # The cavity: the task's scores without this edge's message.
    cavity = scores[task]
    cavity[np.arange(len(task)), label] -= message
    return log_normalise(cavity)[0][np.arange(len(task)), label], scores


def matrix_messages(
    indptr: Ints,
    edge_start: Ints,
    edge_worker: Ints,
    label: Ints,
    weight: Floats | None,
    log_class: Floats,
    prior_rows: Floats,
    prior_index: Ints | None,
    rule_start: Ints,
    node_start: Ints,
    nodes: Floats,
    share: Floats,
    message: Floats,
    node_sums: Floats,
    mass: Floats,
    probas: Floats | None,
    damping: float,
    tol: float,
    update: bool,
) -> tuple[float, int]:
    """One round of messages for workers with confusion matrices, in place.

    ``indptr`` points to edges, one per (task, worker) pair, and ``edge_start`` from edges to
    annotations: a worker may have labelled a task several times. ``nodes`` (nodes, L, K) are the
    confusion matrices, true class last; ``message`` (E, K) are log messages with maximum 0.
    """
    task, n = _task_of(indptr), len(indptr) - 1
    rows = slice(indptr[0], indptr[-1])
    worker = edge_worker[rows]
    prior = _prior(log_class, prior_rows, prior_index, n)
    K = len(log_class)
    parts = _slices(len(worker), K * len(share) / max(len(node_start) - 1, 1))
    factors = (indptr[0], edge_start, label, weight, nodes)
    moved = 0
    if update:
        new = np.empty_like(message)
        outside = _cavity(task, message, prior)[0]
        for some in parts:
            edge, at_rule, at_node = _expand(worker[some], rule_start, node_start)
            f = _factor(some, edge, at_rule, *factors)
            ratio = share[at_node] / (f * outside[some][edge]).sum(axis=1)
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
        edge, at_rule, at_node = _expand(worker[some], rule_start, node_start)
        f = _factor(some, edge, at_rule, *factors)
        values = np.log((f * outside[some][edge]).sum(axis=1))
        node_sums += np.bincount(at_node, values, len(node_sums))
    q, log_z = log_normalise(scores)
    labelled = np.diff(indptr) > 0
    mass += q[labelled].sum(axis=0)
    if probas is not None:
        probas[:] = q
    edges = np.log((np.exp(message) * outside).sum(axis=1))
    log_prior = log_normalise(np.array(prior))[1]
    return float((log_z - log_prior)[labelled].sum() - edges.sum()), moved


def _cavity(task: Ints, message: Floats, prior: Floats) -> tuple[Floats, Floats]:
    """Return the normalised cavity messages (E, K) and the tasks' log scores (n, K)."""
    scores = np.array(prior)
    for k in range(prior.shape[1]):
        scores[:, k] += np.bincount(task, message[:, k], len(prior))
    return log_normalise(scores[task] - message)[0], scores


def _factor(
    some: slice,
    edge: Ints,
    at_rule: Ints,
    first_edge: int,
    edge_start: Ints,
    label: Ints,
    weight: Floats | None,
    nodes: Floats,
) -> Floats:
    """Return the likelihood (pairs, K) of each edge's labels at each node of its worker."""
    start = edge_start[first_edge + some.start : first_edge + some.stop + 1]
    f = np.ones((len(edge), nodes.shape[2]))
    for repeat in range(int(np.diff(start).max(initial=1))):
        row = start[:-1] + repeat
        has = row < start[1:]
        pairs = has[edge]
        at = row[edge[pairs]]
        value = nodes[at_rule[pairs], label[at]]
        f[pairs] *= value if weight is None else value ** weight[at][:, None]
    return f
