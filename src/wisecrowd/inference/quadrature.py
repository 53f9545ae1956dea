r"""Quadrature rules over a worker's confusion matrix: nodes and log weights.

The likelihood of a worker's labels is a polynomial in the prior's free probabilities. Its degree in
each is at most the number of labels. Gauss-Jacobi rules with :math:`\lceil (r + 1) / 2 \rceil`
nodes integrate degree :math:`r` exactly against a Beta density, and a Dirichlet is a chain of
Betas.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wisecrowd.core.types import Floats

EXACT_NODES = 4096  # largest product rule; beyond it, quasi-Monte Carlo is used
INSIDE = 1e-12  # least distance of nodes from 0 and 1, where the logarithm is infinite


class Rule(NamedTuple):
    """Nodes, accuracies (S,) or confusion matrices (S, K, K), and their log weights (S,)."""

    nodes: Floats
    log_weight: Floats


def enough_nodes(degree: int) -> int:
    r"""Return the number of Gauss-Jacobi nodes of a worker, enough to be exact up to 40 labels.

    Beyond that, :math:`2.5 \sqrt r` nodes resolve a posterior of width :math:`1 / \sqrt r`.
    """
    exact = (degree + 2) // 2
    return min(exact, max(20, math.ceil(2.5 * math.sqrt(degree))))


def beta_rule(a: float, b: float, n_nodes: int) -> Rule:
    """Return Gauss-Jacobi nodes of Beta(a, b): exact for polynomials of degree 2 n_nodes - 1.

    The nodes are the eigenvalues of the Jacobi polynomials' recurrence (Golub and Welsch 1969). A
    weight is one over the sum of the squares of the orthonormal polynomials at its node. Unlike the
    eigenvectors' entries, this gives the smallest weights to full precision.
    """
    from scipy.linalg import eigvalsh_tridiagonal

    alpha, beta = b - 1.0, a - 1.0  # exponents of (1 - x) and (1 + x) on [-1, 1]
    n = np.arange(1, n_nodes, dtype=np.float64)
    middle = 2 * n + alpha + beta
    diagonal = np.empty(n_nodes)
    diagonal[0] = (beta - alpha) / (alpha + beta + 2)
    diagonal[1:] = (beta - alpha) * (beta + alpha) / (middle * (middle + 2))
    square = 4 * n * (n + alpha) * (n + beta) / (middle**2 * (middle + 1))
    # (n + alpha + beta) / (middle - 1) is 1 at n = 1, also where both are 0.
    square[1:] *= (n[1:] + alpha + beta) / (middle[1:] - 1)
    step = np.sqrt(square)
    x = eigvalsh_tridiagonal(diagonal, step)
    before, value = np.zeros(n_nodes), np.ones(n_nodes)
    total = np.ones(n_nodes)
    for k in range(n_nodes - 1):
        back = step[k - 1] * before if k > 0 else 0.0
        before, value = value, ((x - diagonal[k]) * value - back) / step[k]
        total += value**2
    return Rule(np.clip((1 + x) / 2, INSIDE, 1 - INSIDE), -np.log(total))


def centred_beta_rule(a: float, b: float, correct: float, wrong: float, n_nodes: int) -> Rule:
    r"""Return nodes of Beta(a + correct, b + wrong), reweighted to the prior Beta(a, b).

    .. math:: \omega_s \, p_s^{-c} (1 - p_s)^{-w} \, B(a + c, b + w) / B(a, b)

    The posterior of a worker with thousands of labels falls between the prior's own nodes; these
    nodes are centred on it.
    """
    from scipy.special import betaln

    p, log_weight = beta_rule(a + correct, b + wrong, n_nodes)
    back = correct * np.log(p) + wrong * np.log1p(-p)
    constant = betaln(a + correct, b + wrong) - betaln(a, b)
    return Rule(p, log_weight - back + constant)


def as_row(rule: Rule) -> Rule:
    """Convert a rule for probabilities (S,) to one for rows (S, 2)."""
    return Rule(np.stack([rule.nodes, 1 - rule.nodes], axis=1), rule.log_weight)


def simplex_rule(alpha: Floats, n_nodes: int) -> Rule:
    """Return a rule (n_nodes^(L - 1), L) for Dir(alpha) on the simplex, by stick-breaking."""
    values = np.ones((1, 1))  # the last column is the rest of the stick
    log_weight = np.zeros(1)
    for position in range(len(alpha) - 1):
        piece = beta_rule(alpha[position], float(alpha[position + 1 :].sum()), n_nodes)
        rest = values[:, -1:]
        taken = np.repeat(values, n_nodes, axis=0)
        share = np.tile(piece.nodes, len(values))[:, None]
        left = np.repeat(rest, n_nodes, axis=0)
        values = np.hstack([taken[:, :-1], left * share, left * (1 - share)])
        log_weight = (log_weight[:, None] + piece.log_weight).ravel()
    return Rule(values, log_weight)


def product_rule(rows: list[Rule]) -> Rule:
    """Combine a rule for each row of the confusion matrix into one for the matrix, (S, K, L)."""
    sizes = [len(rule.log_weight) for rule in rows]
    grid = np.indices(sizes).reshape(len(rows), -1)
    nodes = np.stack([rule.nodes[index] for rule, index in zip(rows, grid, strict=True)], axis=1)
    log_weight = sum(rule.log_weight[index] for rule, index in zip(rows, grid, strict=True))
    return Rule(nodes, np.asarray(log_weight))


def affordable(degree: int, n_classes: int) -> bool:
    """Return whether an exact rule for K Dirichlet rows has at most ``EXACT_NODES`` nodes."""
    dimensions = n_classes * (n_classes - 1)
    return bool(((degree + 2) // 2) ** dimensions <= EXACT_NODES)


def dirichlet_rule(
    alpha: Floats, degree: int, size: int, counts: Floats | None = None, seed: int = 0
) -> Rule:
    r"""Return a rule for independent rows Dir(alpha[k]), (S, K, K).

    Exact products of Gauss-Jacobi rules if they need at most ``EXACT_NODES`` nodes. Otherwise a
    scrambled Sobol sequence of ``size`` points from :math:`Dir(\alpha + counts)`, reweighted to the
    prior, because points from the prior would all miss an active worker's posterior.
    """
    if affordable(degree, len(alpha)):
        n_nodes = (degree + 2) // 2
        return product_rule([simplex_rule(row, n_nodes) for row in alpha])
    return sobol_rule(alpha, size, np.zeros_like(alpha) if counts is None else counts, seed)


def sobol_rule(alpha: Floats, size: int, counts: Floats, seed: int) -> Rule:
    """Return quasi-Monte Carlo nodes from Dir(alpha + counts), reweighted to Dir(alpha)."""
    from scipy.special import betaincinv
    from scipy.stats import qmc

    K = len(alpha)
    dimension = max(K * (K - 1), 1)
    power = max(1, math.ceil(math.log2(size)))
    # Every version of SciPy accepts ``seed``, and a generator draws the same in all of them.
    generator = np.random.default_rng(seed)
    uniform = qmc.Sobol(dimension, scramble=True, seed=generator).random_base2(power)
    shape = alpha + counts
    nodes = np.empty((len(uniform), K, K))
    column = 0
    for k in range(K):
        left = np.ones(len(uniform))
        for position in range(K - 1):
            rest = shape[k, position + 1 :].sum()
            share = betaincinv(shape[k, position], rest, uniform[:, column])
            nodes[:, k, position] = left * share
            left = left * (1 - share)
            column += 1
        nodes[:, k, K - 1] = left
    return weighted_back(nodes, alpha, counts)


def weighted_back(nodes: Floats, alpha: Floats, counts: Floats) -> Rule:
    """Weight points of Dir(alpha + counts) so that they integrate against Dir(alpha)."""
    from scipy.special import gammaln

    nodes = np.maximum(nodes, INSIDE)
    nodes = nodes / nodes.sum(axis=2, keepdims=True)

    def log_beta(shape: Floats) -> float:
        return float((gammaln(shape).sum(axis=1) - gammaln(shape.sum(axis=1))).sum())

    back = (counts * np.log(nodes)).sum(axis=(1, 2))
    constant = log_beta(alpha + counts) - log_beta(alpha)
    return Rule(nodes, -back + constant - math.log(len(nodes)))
