"""Sequential mean field over clusters in NumPy: the specification of the compiled kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wisecrowd.core.types import Floats, Ints


class Incidence(NamedTuple):
    """Votes by item: those of item ``a`` are the entries ``indptr[a]`` to ``indptr[a + 1]``.

    Every vote has two entries, one for each of its items.
    """

    indptr: Ints  # (n_items + 1,)
    other: Ints  # (2 n_votes,) the other item
    vote: Ints  # (2 n_votes,) the vote


def update_items(
    votes: Incidence, order: Ints, evidence: Floats, log_class: Floats, q: Floats
) -> float:
    """Update the posterior of one item after the other, in place; return the largest change.

    Parameters
    ----------
    votes : Incidence
    order : (n,) int
        Items to update, in this order.
    evidence : (n_votes,)
        Log-likelihood ratio of each vote for "same", times its weight.
    log_class : (n_clusters,)
    q : (n_items, n_clusters)
        Posterior, changed in place.
    """
    largest = 0.0
    for a in order.tolist():
        part = slice(votes.indptr[a], votes.indptr[a + 1])
        logits = log_class + evidence[votes.vote[part]] @ q[votes.other[part]]
        new = np.exp(logits - logits.max())
        new /= new.sum()
        largest = max(largest, float(np.abs(new - q[a]).max()))
        q[a] = new
    return largest


def same_probability(left: Ints, right: Ints, q: Floats) -> Floats:
    """Return the probability (n_votes,) that the two items of each vote share a cluster."""
    return np.asarray(np.einsum("ek,ek->e", q[left], q[right]))
