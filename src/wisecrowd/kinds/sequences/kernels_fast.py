"""Hidden tag chains, compiled; the reference defines every kernel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats, Ints
from wisecrowd.kernels.compiling import compiled
from wisecrowd.kinds.sequences.kernels import LEAST, NEAR, SMALLEST, Smoothed, TokenLabels

__all__ = ["best_path", "counts", "evidence", "evidence_without_own", "smooth"]


@compiled
def _evidence(
    token: Ints, worker: Ints, tag: Ints, previous: Ints, weight: Floats | None,
    log_theta: Floats, context: Ints, total: Floats,
) -> None:  # fmt: skip
    for n in range(token.shape[0]):
        w = 1.0 if weight is None else weight[n]
        t, j, tag_n, p = token[n], worker[n], tag[n], previous[n]
        for k in range(total.shape[1]):
            total[t, k] += w * log_theta[j, context[p, k], k, tag_n]


def evidence(labels: TokenLabels, log_theta: Floats, context: Ints, n_tokens: int) -> Floats:
    """Return (n_tokens, K) log-likelihoods of the tags of each token; see the reference."""
    total = np.zeros((n_tokens, log_theta.shape[2]))
    _evidence(*labels, log_theta, context, total)
    return total


@compiled
def _evidence_without_own(
    token: Ints, worker: Ints, tag: Ints, previous: Ints, weight: Floats | None,
    counts: Floats, whole: Floats, context: Ints, marginals: Floats, total: Floats,
) -> None:  # fmt: skip
    for n in range(token.shape[0]):
        w = 1.0 if weight is None else weight[n]
        t, j, tag_n, p = token[n], worker[n], tag[n], previous[n]
        for k in range(total.shape[1]):
            c, own = context[p, k], w * marginals[t, k]
            part = max(counts[j, c, k, tag_n] - own, SMALLEST)
            total[t, k] += w * np.log(part / max(whole[j, c, k] - own, SMALLEST))


def evidence_without_own(
    labels: TokenLabels, counts: Floats, context: Ints, marginals: Floats
) -> Floats:
    """Return (n_tokens, K) log-likelihoods without own contributions; see the reference."""
    total, whole = np.zeros_like(marginals), counts.sum(axis=-1)
    _evidence_without_own(*labels, counts, whole, context, marginals, total)
    return total


@compiled
def _counts(
    token: Ints, worker: Ints, tag: Ints, previous: Ints, weight: Floats | None,
    marginals: Floats, context: Ints, total: Floats,
) -> None:  # fmt: skip
    for n in range(token.shape[0]):
        w = 1.0 if weight is None else weight[n]
        t, j, tag_n, p = token[n], worker[n], tag[n], previous[n]
        for k in range(marginals.shape[1]):
            total[j, context[p, k], k, tag_n] += w * marginals[t, k]


def counts(
    labels: TokenLabels, marginals: Floats, context: Ints, shape: tuple[int, int, int, int]
) -> Floats:
    """Return (J, S, K, K) expected counts; see the reference."""
    total = np.zeros(shape)
    _counts(*labels, marginals, context, total)
    return total


@compiled
def _forward(
    log_evidence: Floats, begin: int, end: int, start: Floats, step: Floats,
    alpha: Floats, message: Floats,
) -> float:  # fmt: skip
    K = log_evidence.shape[1]
    ahead, log_total = np.empty(K), 0.0
    for t in range(begin, end):
        top = log_evidence[t].max()
        for k in range(K):
            ahead[k] = start[k] if t == begin else 0.0
        for a in range(K if t > begin else 0):
            for k in range(K):
                ahead[k] += alpha[t - 1, a] * step[a, k]
        total = 0.0
        for k in range(K):
            relative = log_evidence[t, k] - top
            message[t, k] = 0.0 if relative == -np.inf else np.exp(max(relative, LEAST))
            alpha[t, k] = ahead[k] * message[t, k]
            total += alpha[t, k]
        for k in range(K):
            alpha[t, k] /= total
        log_total += top + np.log(total)
    return log_total


@compiled
def _backward(
    begin: int, end: int, step: Floats, alpha: Floats, marginals: Floats, message: Floats,
    first: Floats, steps: Floats,
) -> None:  # fmt: skip
    K = alpha.shape[1]
    beta, raw = np.ones(K), np.empty(K)
    for t in range(end - 1, begin - 1, -1):
        total = 0.0
        for k in range(K):
            marginals[t, k] = alpha[t, k] * beta[k]
            total += marginals[t, k]
            message[t, k] *= beta[k]
        for k in range(K):
            marginals[t, k] /= max(total, 1e-300)
        if t == begin:
            first += marginals[t]
            return
        joint = 0.0
        for a in range(K):
            raw[a] = 0.0
            for k in range(K):
                raw[a] += step[a, k] * message[t, k]
            joint += alpha[t - 1, a] * raw[a]
        for a in range(K):
            share = alpha[t - 1, a] / joint
            for k in range(K):
                steps[a, k] += share * step[a, k] * message[t, k]
        beta[:] = raw / raw.sum()


@compiled
def _smooth(
    log_evidence: Floats, pointer: Ints, start: Floats, step: Floats,
    alpha: Floats, marginals: Floats, message: Floats, first: Floats, steps: Floats,
) -> float:  # fmt: skip
    log_total = 0.0
    for i in range(pointer.shape[0] - 1):
        begin, end = pointer[i], pointer[i + 1]
        log_total += _forward(log_evidence, begin, end, start, step, alpha, message)
        if begin < end:
            _backward(begin, end, step, alpha, marginals, message, first, steps)
    return log_total


def smooth(log_evidence: Floats, pointer: Ints, start: Floats, step: Floats) -> Smoothed:
    """Return the posterior of chains; see the reference."""
    n_classes = log_evidence.shape[1]
    alpha, marginals, message = (np.empty_like(log_evidence) for _ in range(3))
    first, steps = np.zeros(n_classes), np.zeros((n_classes, n_classes))
    total = _smooth(log_evidence, pointer, start, step, alpha, marginals, message, first, steps)
    return Smoothed(marginals, message, first, steps, total)


@compiled
def _first_near_best(values: Floats) -> int:
    top = values.max()
    for a in range(values.shape[0]):
        if values[a] >= top - NEAR:
            return a
    return 0


@compiled
def _best_path(
    log_evidence: Floats, pointer: Ints, log_start: Floats, log_step: Floats,
    back: NDArray[np.int32], path: NDArray[np.int32],
) -> None:  # fmt: skip
    K = log_evidence.shape[1]
    score, new = np.empty(K), np.empty(K)
    for i in range(pointer.shape[0] - 1):
        begin, end = pointer[i], pointer[i + 1]
        if begin == end:
            continue
        score[:] = log_start + log_evidence[begin]
        for t in range(begin + 1, end):
            for k in range(K):
                ways = score + log_step[:, k]
                back[t, k] = _first_near_best(ways)
                new[k] = ways.max() + log_evidence[t, k]
            score[:] = new
        path[end - 1] = _first_near_best(score)
        for t in range(end - 1, begin, -1):
            path[t - 1] = back[t, path[t]]


def best_path(
    log_evidence: Floats, pointer: Ints, log_start: Floats, log_step: Floats
) -> NDArray[np.int32]:
    """Return the most probable tags of all tokens; see the reference."""
    path = np.zeros(len(log_evidence), dtype=np.int32)
    back = np.zeros(log_evidence.shape, dtype=np.int32)
    _best_path(log_evidence, pointer, log_start, log_step, back, path)
    return path
