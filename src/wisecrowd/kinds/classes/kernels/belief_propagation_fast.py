"""The kernels of :mod:`wisecrowd.kinds.classes.kernels.belief_propagation`, compiled.

A task's messages are read, replaced and added to the workers' new sums in one visit: the only
memory per annotation is the message itself.
"""

from __future__ import annotations

import math

import numpy as np

from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels.arguments import TaskLabels, TaskPriors
from wisecrowd.kernels.compiling import compiled, prefetch_row
from wisecrowd.kinds.classes.kernels.belief_propagation import Edges, MessageOutput, WorkerNodes

__all__ = ["coin_messages", "matrix_messages"]


TERMS = 16  # terms of a node in one product; each is at least 1e-12 / (K - 1)
AHEAD = 12  # edges between prefetching a worker's numbers and using them


@compiled
def _log_sum(values: Floats, skip: int) -> float:
    """Return the log of the sum of exponentials, without one position (-1: none)."""
    top = -np.inf
    for k in range(values.shape[0]):
        if k != skip:
            top = max(top, values[k])
    if top == -np.inf:
        return top
    total = 0.0
    for k in range(values.shape[0]):
        if k != skip:
            total += math.exp(values[k] - top)
    return top + math.log(total)


@compiled
def _start_scores(log_class: Floats, rows: Floats, row_of: Ints | None, i: int,
                  scores: Floats) -> None:  # fmt: skip
    row = 0 if row_of is None else row_of[i]
    for k in range(scores.shape[0]):
        scores[k] = log_class[k] + rows[row, k]


@compiled
def _power(weight: Floats | None, e: int) -> float:
    return 1.0 if weight is None else weight[e]


@compiled
def _add_belief(scores: Floats, log_z: float, labelled: bool, mass: Floats,
                probas: Floats | None, i: int) -> None:  # fmt: skip
    """Add a task's belief to the class mass if it has labels, and store it if requested."""
    for k in range(scores.shape[0]):
        q = math.exp(scores[k] - log_z)
        if labelled:
            mass[k] += q
        if probas is not None:
            probas[i, k] = q


@compiled
def _set_exponentials(scores: Floats, terms: Floats) -> None:
    """Compute exponentials with maximum 1."""
    top = scores[0]
    for k in range(1, scores.shape[0]):
        top = max(top, scores[k])
    for k in range(scores.shape[0]):
        terms[k] = math.exp(scores[k] - top)


@compiled
def _share_of_own(scores: Floats, terms: Floats, own: int, message: float,
                  power: float) -> tuple[float, float]:  # fmt: skip
    """Return the cavity probability of class ``own`` and of all others, without one message."""
    if power == 1.0 and scores.shape[0] > 2:
        # The message of one label is below 50, so no term that matters has underflowed.
        mine = terms[own] * math.exp(-message)
        others = 0.0
        for k in range(terms.shape[0]):
            if k != own:
                others += terms[k]
        return mine / (mine + others), others / (mine + others)
    gap = scores[own] - message
    if scores.shape[0] == 2:
        gap -= scores[1 - own]
    else:
        gap -= _log_sum(scores, own)
    small = math.exp(-abs(gap))
    larger = 1.0 / (1.0 + small)
    if gap >= 0:
        return larger, small * larger
    return small * larger, larger


@compiled
def _fresh_coin_message(share: Floats, right: Floats, wrong: Floats, rule: int, low: int, high: int,
                        power: float, x: float, y: float) -> float:  # fmt: skip
    """Return the log-ratio that a worker's nodes send, without the term of this task."""
    up = 0.0
    down = 0.0
    if power == 1.0:
        for s in range(low, high):
            p = right[rule + s]
            q = wrong[rule + s]
            ratio = share[s] / (p * x + q * y)
            up += ratio * p
            down += ratio * q
        return math.log(up / down)
    for s in range(low, high):
        p = right[rule + s] ** power
        q = wrong[rule + s] ** power
        ratio = share[s] / (p * x + q * y)
        up += ratio * p
        down += ratio * q
    return math.log(up / down)


@compiled
def _add_coin_sums(node_sums: Floats, right: Floats, wrong: Floats, rule: int, low: int, high: int,
                   power: float, x: float, y: float) -> None:  # fmt: skip
    for s in range(low, high):
        p = right[rule + s] ** power
        q = wrong[rule + s] ** power
        node_sums[s] += math.log(p * x + q * y)


@compiled
def _multiply_coin_terms(product: Floats, right: Floats, wrong: Floats, rule: int, low: int,
                         high: int, x: float, y: float) -> None:  # fmt: skip
    for s in range(low, high):
        product[s] *= right[rule + s] * x + wrong[rule + s] * y


@compiled
def _add_logs(node_sums: Floats, product: Floats, low: int, high: int) -> None:
    """Add the logarithms of products to the sums, and start the products again."""
    for s in range(low, high):
        node_sums[s] += math.log(product[s])
        product[s] = 1.0


@compiled
def _ask_early(worker: Ints, e: int, rule_start: Ints, node_start: Ints, share: Floats,
               node_sums: Floats) -> None:  # fmt: skip
    """Prefetch the data of later edges, because workers come in random order."""
    last = worker.shape[0] - 1
    far = worker[min(e + 2 * AHEAD, last)]
    prefetch_row(rule_start, far)
    prefetch_row(node_start, far)
    near = node_start[worker[min(e + AHEAD, last)]]
    prefetch_row(share, near)
    prefetch_row(node_sums, near)


@compiled
def coin_messages(labels: TaskLabels, priors: TaskPriors, nodes: WorkerNodes, output: MessageOutput,
                  damping: float, tol: float, update: bool) -> tuple[float, int]:  # fmt: skip
    """See :func:`wisecrowd.kinds.classes.kernels.belief_propagation.coin_messages`."""
    indptr, worker, label, weight = labels
    log_class, rows, row_of = priors
    rule_start, node_start, right, share = nodes
    message, node_sums, mass, probas = output
    K = log_class.shape[0]
    wrong = (1.0 - right) / max(K - 1, 1)
    scores, later, terms = np.empty(K), np.empty(K), np.empty(K)
    node_product = np.ones(node_sums.shape[0])  # one logarithm for several terms of a node
    pending = np.zeros(rule_start.shape[0], dtype=np.uint8)
    total = 0.0
    moved = 0
    for i in range(indptr.shape[0] - 1):
        begin, end = indptr[i], indptr[i + 1]
        _start_scores(log_class, rows, row_of, i, scores)
        log_prior = _log_sum(scores, -1)
        later[:] = scores
        for e in range(begin, end):
            _ask_early(worker, e, rule_start, node_start, share, node_sums)
            scores[label[e]] += message[e]
        _set_exponentials(scores, terms)
        for e in range(begin, end):
            if update:
                j = worker[e]
                low = node_start[j]
                old = message[e]
                power = _power(weight, e)
                x, y = _share_of_own(scores, terms, label[e], old, power)
                new = _fresh_coin_message(share, right, wrong, rule_start[j] - low, low,
                                          node_start[j + 1], power, x, y)  # fmt: skip
                new = damping * old + (1.0 - damping) * new
                moved += 0.25 * abs(new - old) > tol  # a bound on the change of probability
                message[e] = new
            later[label[e]] += message[e]
        log_z = _log_sum(later, -1)
        _add_belief(later, log_z, end > begin, mass, probas, i)
        _set_exponentials(later, terms)
        product = 1.0  # one logarithm for the task's edges
        for e in range(begin, end):
            j = worker[e]
            low = node_start[j]
            m = message[e]
            power = _power(weight, e)
            x, y = _share_of_own(later, terms, label[e], m, power)
            small = math.exp(-abs(m))
            product *= x + y * small if m >= 0 else x * small + y
            total -= max(m, 0.0)
            if product < 1e-200:
                total -= math.log(product)
                product = 1.0
            rule, high = rule_start[j] - low, node_start[j + 1]
            if power != 1.0:
                _add_coin_sums(node_sums, right, wrong, rule, low, high, power, x, y)
                continue
            _multiply_coin_terms(node_product, right, wrong, rule, low, high, x, y)
            pending[j] += 1
            if pending[j] == TERMS:
                _add_logs(node_sums, node_product, low, high)
                pending[j] = 0
        if end > begin:
            total += log_z - log_prior - math.log(product)
    _add_logs(node_sums, node_product, 0, node_sums.shape[0])
    return total, moved


@compiled
def _node_factor(begin: int, end: int, label: Ints, weight: Floats | None, values: Floats,
                 node: int, factor: Floats) -> None:  # fmt: skip
    """Compute the likelihood of one edge's labels at one node, for every class."""
    for k in range(factor.shape[0]):
        factor[k] = 1.0
    for a in range(begin, end):
        for k in range(factor.shape[0]):
            if weight is None:
                factor[k] *= values[node, label[a], k]
            else:
                factor[k] *= values[node, label[a], k] ** weight[a]


@compiled
def _set_cavity(scores: Floats, message: Floats, e: int, cavity: Floats) -> None:
    """Compute the normalised probabilities of a task without edge ``e``."""
    K = scores.shape[0]
    for k in range(K):
        cavity[k] = scores[k] - message[e, k]
    log_z = _log_sum(cavity, -1)
    for k in range(K):
        cavity[k] = math.exp(cavity[k] - log_z)


@compiled
def _new_message(e: int, edges: Edges, labels: TaskLabels, nodes: WorkerNodes, cavity: Floats,
                 factor: Floats, new: Floats) -> None:  # fmt: skip
    """Fill the log message of one edge from its worker's node weights, maximum 0."""
    K = cavity.shape[0]
    label, weight = labels.label, labels.weight
    rule_start, node_start, values, share = nodes
    begin, end, j = edges.start[e], edges.start[e + 1], edges.worker[e]
    rule = rule_start[j] - node_start[j]
    for k in range(K):
        new[k] = 0.0
    for s in range(node_start[j], node_start[j + 1]):
        _node_factor(begin, end, label, weight, values, rule + s, factor)
        dot = 0.0
        for k in range(K):
            dot += factor[k] * cavity[k]
        ratio = share[s] / dot
        for k in range(K):
            new[k] += ratio * factor[k]
    top = -np.inf
    for k in range(K):
        new[k] = math.log(new[k])
        top = max(top, new[k])
    for k in range(K):
        new[k] -= top


@compiled
def _replace(message: Floats, e: int, new: Floats, damping: float, tol: float) -> bool:
    """Damp and store a message; return whether a probability moved by more than ``tol``."""
    K = new.shape[0]
    old = message[e].copy()
    top = -np.inf
    for k in range(K):
        new[k] = damping * old[k] + (1.0 - damping) * new[k]
        top = max(top, new[k])
    change = 0.0
    before = _log_sum(old, -1)
    after = _log_sum(new, -1)
    for k in range(K):
        change = max(change, abs(math.exp(new[k] - after) - math.exp(old[k] - before)))
        message[e, k] = new[k] - top
    return change > tol


@compiled
def _matrix_sums(begin: int, end: int, edges: Edges, labels: TaskLabels, nodes: WorkerNodes,
                 message: Floats, scores: Floats, cavity: Floats, factor: Floats,
                 node_sums: Floats) -> float:  # fmt: skip
    """Add the terms of one task to its workers' nodes; return its edges' log agreement."""
    K = scores.shape[0]
    label, weight = labels.label, labels.weight
    rule_start, node_start, values, _ = nodes
    total = 0.0
    for e in range(begin, end):
        _set_cavity(scores, message, e, cavity)
        agree = 0.0
        for k in range(K):
            agree += math.exp(message[e, k]) * cavity[k]
        total += math.log(agree)
        first, last, j = edges.start[e], edges.start[e + 1], edges.worker[e]
        rule = rule_start[j] - node_start[j]
        for s in range(node_start[j], node_start[j + 1]):
            _node_factor(first, last, label, weight, values, rule + s, factor)
            dot = 0.0
            for k in range(K):
                dot += factor[k] * cavity[k]
            node_sums[s] += math.log(dot)
    return total


@compiled
def _add_messages(begin: int, end: int, message: Floats, scores: Floats) -> None:
    for e in range(begin, end):
        for k in range(scores.shape[0]):
            scores[k] += message[e, k]


@compiled
def _most_edges(indptr: Ints) -> int:
    """Return the maximum number of edges of a task."""
    most = 0
    for i in range(indptr.shape[0] - 1):
        most = max(most, indptr[i + 1] - indptr[i])
    return most


@compiled
def matrix_messages(edges: Edges, labels: TaskLabels, priors: TaskPriors, nodes: WorkerNodes,
                    output: MessageOutput, damping: float, tol: float,
                    update: bool) -> tuple[float, int]:  # fmt: skip
    """See :func:`wisecrowd.kinds.classes.kernels.belief_propagation.matrix_messages`."""
    indptr = edges.indptr
    log_class, rows, row_of = priors
    message, node_sums, mass, probas = output
    K = log_class.shape[0]
    scores, cavity, factor = np.empty(K), np.empty(K), np.empty(K)
    fresh = np.empty((_most_edges(indptr), K))
    total = 0.0
    moved = 0
    for i in range(indptr.shape[0] - 1):
        begin, end = indptr[i], indptr[i + 1]
        _start_scores(log_class, rows, row_of, i, scores)
        log_prior = _log_sum(scores, -1)
        if update:
            _add_messages(begin, end, message, scores)
            for e in range(begin, end):
                _set_cavity(scores, message, e, cavity)
                _new_message(e, edges, labels, nodes, cavity, factor, fresh[e - begin])
            for e in range(begin, end):
                moved += _replace(message, e, fresh[e - begin], damping, tol)
            _start_scores(log_class, rows, row_of, i, scores)
        _add_messages(begin, end, message, scores)
        log_z = _log_sum(scores, -1)
        _add_belief(scores, log_z, end > begin, mass, probas, i)
        if end > begin:
            total += log_z - log_prior
            total -= _matrix_sums(begin, end, edges, labels, nodes, message, scores, cavity, factor,
                                  node_sums)  # fmt: skip
    return total, moved
