r"""Hidden tag chains in NumPy: the definition of every kernel.

Tokens of all sequences are in one list; those of sequence ``i`` are ``pointer[i]`` to
``pointer[i + 1]``. Tag ``n`` by a worker is about token ``token[n]``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats, Ints

LEAST = -300.0  # smallest logarithm of evidence, relative to the best tag of a token
SMALLEST = 1e-12  # smallest count; priors are larger, up to rounding
NEAR = 1e-9  # paths closer than this are equal; the first in order wins


class TokenLabels(NamedTuple):
    """Tags by workers, in the order of annotations.

    Attributes
    ----------
    token, worker, tag, previous : (n,)
        The token, the worker, the tag, and the worker's tag before, ``K`` at the start.
    weight : (n,), optional
    """

    token: Ints
    worker: Ints
    tag: Ints
    previous: Ints
    weight: Floats | None


class Smoothed(NamedTuple):
    """Posterior of hidden chains.

    Attributes
    ----------
    marginals : (n_tokens, K)
    message : (n_tokens, K)
        Evidence of a token and all later ones, up to a factor per token.
    first : (K,)
        Expected number of sequences that begin with each tag.
    steps : (K, K)
        Expected number of steps from tag to tag.
    log_evidence : float
    """

    marginals: Floats
    message: Floats
    first: Floats
    steps: Floats
    log_evidence: float


def evidence(labels: TokenLabels, log_theta: Floats, context: Ints, n_tokens: int) -> Floats:
    """Return (n_tokens, K) log-likelihoods of the tags of each token.

    Parameters
    ----------
    labels : TokenLabels
    log_theta : (J, S, K, K)
        Logarithm of the probability of a worker's tag, given context and true tag.
    context : (K + 1, K)
        The context of a previous tag and a true tag.
    n_tokens : int
    """
    n_classes = log_theta.shape[2]
    total = np.zeros((n_tokens, n_classes))
    for k in range(n_classes):
        values = log_theta[labels.worker, context[labels.previous, k], k, labels.tag]
        if labels.weight is not None:
            values = labels.weight * values
        total[:, k] = np.bincount(labels.token, values, n_tokens)
    return total


def evidence_without_own(
    labels: TokenLabels, counts: Floats, context: Ints, marginals: Floats
) -> Floats:
    """Return (n_tokens, K) log-likelihoods, each tag's by counts without its own contribution.

    Parameters
    ----------
    labels : TokenLabels
    counts : (J, S, K, K)
        Expected counts with their priors, under the marginals.
    context : (K + 1, K)
    marginals : (n_tokens, K)
    """
    total, whole = np.zeros_like(marginals), counts.sum(axis=-1)
    weight = 1.0 if labels.weight is None else labels.weight
    for k in range(marginals.shape[1]):
        own = weight * marginals[labels.token, k]
        cell = context[labels.previous, k]
        part = counts[labels.worker, cell, k, labels.tag] - own
        rest = whole[labels.worker, cell, k] - own
        values = weight * np.log(np.maximum(part, SMALLEST) / np.maximum(rest, SMALLEST))
        total[:, k] = np.bincount(labels.token, values, len(total))
    return total


def counts(
    labels: TokenLabels, marginals: Floats, context: Ints, shape: tuple[int, int, int, int]
) -> Floats:
    """Return (J, S, K, K) expected counts of context, true tag and tag of each worker."""
    total = np.zeros(shape)
    n_workers, n_contexts, n_classes, _ = shape
    for k in range(n_classes):
        values = marginals[labels.token, k]
        if labels.weight is not None:
            values = labels.weight * values
        place = (labels.worker * n_contexts + context[labels.previous, k]) * n_classes + labels.tag
        size = n_workers * n_contexts * n_classes
        cells = np.bincount(place, values, size)
        total[:, :, k, :] = cells.reshape(n_workers, n_contexts, n_classes)
    return total


def scaled(log_evidence: Floats) -> tuple[Floats, Floats]:
    """Return evidence with 1 for the best tag of each token, and the logarithm of the factor."""
    top = log_evidence.max(axis=1)
    relative = log_evidence - top[:, None]
    return np.where(relative == -np.inf, 0.0, np.exp(np.maximum(relative, LEAST))), top


def smooth(log_evidence: Floats, pointer: Ints, start: Floats, step: Floats) -> Smoothed:
    """Return the posterior of chains; sequences of equal length advance together.

    Parameters
    ----------
    log_evidence : (n_tokens, K)
    pointer : (n_sequences + 1,)
    start, step : (K,), (K, K)
        Weights of the first tag and of steps from tag to tag; they need not sum to one.
    """
    likelihood, top = scaled(log_evidence)
    alpha, beta = np.zeros_like(likelihood), np.ones_like(likelihood)
    length = np.diff(pointer)
    order = np.argsort(-length, kind="stable")
    order = order[length[order] > 0]
    begins, sizes = pointer[:-1][order], length[order]
    log_total = float(top.sum())
    for t in range(int(sizes.max(initial=0))):
        at = begins[: np.searchsorted(-sizes, -t, side="left")] + t
        ahead = start[None, :] if t == 0 else alpha[at - 1] @ step
        raw = ahead * likelihood[at]
        total = raw.sum(axis=1, keepdims=True)
        alpha[at] = raw / total
        log_total += float(np.log(total).sum())
    for t in range(int(sizes.max(initial=0)) - 2, -1, -1):
        at = begins[: np.searchsorted(-sizes, -(t + 1), side="left")] + t
        raw = (likelihood[at + 1] * beta[at + 1]) @ step.T
        beta[at] = raw / raw.sum(axis=1, keepdims=True)
    joint = alpha * beta
    marginals = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
    message = likelihood * beta
    is_first = np.zeros(len(likelihood), dtype=bool)
    is_first[begins] = True
    later = np.flatnonzero(~is_first)
    before, after = alpha[later - 1], message[later]
    total = np.einsum("tk,tk->t", before @ step, after)
    steps = step * ((before / total[:, None]).T @ after)  # sum of the joint posteriors of two tags
    return Smoothed(marginals, message, marginals[is_first].sum(axis=0), steps, log_total)


def best_path(
    log_evidence: Floats, pointer: Ints, log_start: Floats, log_step: Floats
) -> NDArray[np.int32]:
    """Return the most probable tags of all tokens (Viterbi)."""
    path = np.zeros(len(log_evidence), dtype=np.int32)
    back = np.zeros(log_evidence.shape, dtype=np.int32)
    for i in range(len(pointer) - 1):
        first, last = int(pointer[i]), int(pointer[i + 1])
        if first == last:
            continue
        score = log_start + log_evidence[first]
        for t in range(first + 1, last):
            ways = score[:, None] + log_step
            top = ways.max(axis=0)
            back[t] = np.argmax(ways >= top - NEAR, axis=0)
            score = top + log_evidence[t]
        path[last - 1] = np.argmax(score >= score.max() - NEAR)
        for t in range(last - 1, first, -1):
            path[t - 1] = back[t, path[t]]
    return path
