"""Sequential mean field over clusters, compiled; the reference defines every kernel."""

from __future__ import annotations

import numpy as np

from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels.compiling import compiled
from wisecrowd.kinds.same.kernels import Incidence

__all__ = ["same_probability", "update_items"]


@compiled
def update_items(
    votes: Incidence, order: Ints, evidence: Floats, log_class: Floats, q: Floats
) -> float:
    """Update the posterior of one item after the other, in place; see the reference."""
    n_clusters = q.shape[1]
    logits = np.empty(n_clusters)
    largest = 0.0
    for place in range(order.shape[0]):
        a = order[place]
        logits[:] = log_class
        for entry in range(votes.indptr[a], votes.indptr[a + 1]):
            strength, b = evidence[votes.vote[entry]], votes.other[entry]
            for k in range(n_clusters):
                logits[k] += strength * q[b, k]
        top = logits.max()
        total = 0.0
        for k in range(n_clusters):
            logits[k] = np.exp(logits[k] - top)
            total += logits[k]
        for k in range(n_clusters):
            new = logits[k] / total
            largest = max(largest, abs(new - q[a, k]))
            q[a, k] = new
    return largest


@compiled
def same_probability(left: Ints, right: Ints, q: Floats) -> Floats:
    """Return the probability that the two items of each vote share a cluster."""
    found = np.zeros(left.shape[0])
    for e in range(left.shape[0]):
        for k in range(q.shape[1]):
            found[e] += q[left[e], k] * q[right[e], k]
    return found
