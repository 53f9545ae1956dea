r"""Detection of pairs of workers who agree more than their skills explain.

Labels that are independent given the class have covariances, over the tasks that two workers share,

.. math::
    C_{jj'}[l, l'] = R_{jj'}[l, l'] - R_{jj'}[l, \cdot]\, R_{jj'}[\cdot, l']
        = \theta_j^\top (\operatorname{diag}\pi - \pi\pi^\top)\, \theta_{j'} = F_j F_{j'}^\top

with factors :math:`F_j` of K × (K - 1): off the diagonal, the covariances of the whole crowd have
low rank, and so has the matrix of agreements (at most K²). Workers who copy or collude break this
structure only for the pairs among themselves. A robust fit that rejects a minority of the pairs
therefore estimates the skills of all workers, and the rejected pairs are the collusion. It uses no
posterior, which colluders could distort.

The fit is robust regression: iteratively reweighted least squares with bounded influence. It has
several starts, because a large group may capture one. The solution that leaves the fewest pairs
unexplained wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.statistics import benjamini_hochberg
from wisecrowd.core.types import Floats, Mask
from wisecrowd.kinds.classes.families.moments.pair_moments import PairMoments

SWEEPS = 60
SCALE = 1.5  # residual, in standard errors, above which a pair loses influence
MODEL_ERROR = 0.01  # standard error of the model itself, however many tasks are shared
SHRINKAGE = 30.0  # pseudo-tasks in favour of workers who differ only in accuracy
DENSE_UP_TO = 150  # largest covariance matrix (rows) with a full decomposition
CERTAIN = 0.02  # least distance of an expected agreement from 0 and 1
BEYOND = 1.2  # tolerance factor for estimation errors
UNEXPLAINED = 2.0  # standard errors
FEW_PARTNERS = 3.0  # pseudo-partners with typical agreement
LARGEST_Z = 37.0  # beyond it the normal tail underflows


@dataclass(frozen=True, eq=False)
class Dependence:
    """Tests of pairs for agreement beyond what skills explain.

    Attributes
    ----------
    first, second : (n_pairs,) int32
        Codes of the two workers.
    n_shared : (n_pairs,)
        Weight of the tasks that both labelled.
    agreement, expected : (n_pairs,)
        Share of equal labels, and its expectation given the two workers' skills.
    z, p, q : (n_pairs,)
        Standardised excess, its one-sided p-value, and the p-value adjusted by Benjamini and
        Hochberg: among pairs with ``q <= 0.01``, one in a hundred is a false discovery.
    skill : (n_workers, K, K - 1)
        The factors; only their products are identified.
    reference : (n_workers,) bool
        Workers whose pairs determined the skills: all workers, or one camp.
    unexplained : float
        Share of a worker's pairs that agree more than expected by two standard errors, before the
        crowd's own spread is taken into account. The mean over workers, so that the most active
        workers do not dominate.
    copied : (n_pairs,), optional
        Estimated share of copied labels, if the pairs were tested against the rest of the crowd.
    """

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    n_shared: Floats
    agreement: Floats
    expected: Floats
    z: Floats
    p: Floats
    q: Floats
    skill: Floats
    reference: Mask
    unexplained: float
    copied: Floats | None = None

    @property
    def excess(self) -> Floats:
        """(n_pairs,) agreement minus its expectation."""
        return self.agreement - self.expected

    def linked(self, level: float, least_excess: float) -> Mask:
        """Return whether pairs (n_pairs,) are dependent: significantly, and strongly enough."""
        return np.asarray((self.q <= level) & (self.excess >= least_excess))

    @cached_property
    def stance(self) -> Floats:
        """(n_workers,) position on the main axis of skills; its sign separates two camps."""
        if not self.skill.size:
            return np.zeros(len(self.skill))
        side = self.skill.reshape(len(self.skill), -1) @ main_axis_of(self.skill)
        return side if side.sum() >= 0 else -side


def explanations(pairs: PairMoments) -> Iterator[Dependence]:
    """Yield the tested fits from all starts; see the module docstring.

    The starts use every worker's median covariance with a reference, which a minority of copies
    cannot move. The reference is the whole crowd, then one camp: the camps are the two signs on the
    main axis of all covariances.
    """
    K = pairs.n_classes
    require_memory(
        64 * pairs.n_pairs * K * K,
        "Comparing the labels of all pairs of workers",
        "ask for pairs that share more tasks (min_shared), or give the groups",
    )
    everybody = np.ones(pairs.n_workers, dtype=bool)
    if pairs.n_pairs == 0 or K < 2:
        yield _tested(pairs, np.zeros((pairs.n_workers, K, max(K - 1, 0))), everybody)
        return
    fit = _RobustFactors(pairs)
    side = fit.main_axis()
    for reference in (everybody, side > 0, side < 0):
        if reference is everybody or 3 <= reference.sum() < pairs.n_workers:
            factors = fit.run(fit.typical_factors(side, reference), reference)
            yield _tested(pairs, factors, reference)


def dependence(pairs: PairMoments, trusted: Mask | None = None) -> Dependence:
    """Return the fit that leaves the fewest pairs unexplained.

    At least half of the crowd must be its reference. The pairs among a minority of colluders are
    fewer than those among honest workers, and the pairs within several groups are fewer than those
    between them. However, a minority who agree very well may explain more than honest workers who
    hardly agree; such a fit is rejected where it is impossible (:func:`too_wrong`). With
    ``trusted`` workers, their camp is the reference, however small it is.
    """
    active = np.zeros(pairs.n_workers, dtype=bool)
    active[pairs.first] = active[pairs.second] = True

    def rank(found: Dependence) -> tuple[bool, bool, float]:
        size = int((found.reference & active).sum())
        if trusted is not None and trusted.any():
            return not found.reference[trusted].all(), False, size
        impossible = too_wrong(found.stance[active], pairs.n_classes)
        return 2 * size < active.sum(), impossible, found.unexplained

    return min(explanations(pairs), key=rank)


def surprise(pairs: PairMoments) -> Floats:
    """Return the agreement (n_pairs,) beyond that of typical pairs of the two workers, as z-scores.

    Unlike a fit, typical agreement is not moved by copies who share most tasks with each other. A
    large value is a reason to look closer, not a result.
    """
    if pairs.n_pairs == 0:
        return np.zeros(0)
    expected = _typical_agreement(pairs)
    error = np.sqrt(expected * (1 - expected) / pairs.n_shared)
    return np.asarray((pairs.agreement - expected) / error)


def _typical_agreement(pairs: PairMoments) -> Floats:
    """Return the agreement (n_pairs,) expected from every worker's median covariance.

    If workers differ only in accuracy, covariances are products of two factors, and a worker's
    median over its partners is its factor times the median factor.
    """
    indptr, _, pair = pairs.partners
    n = np.diff(indptr)
    own = np.repeat(np.arange(pairs.n_workers), n)
    values = pairs.covariance[pair][np.lexsort((pairs.covariance[pair], own))]
    usual = float(np.median(pairs.covariance))
    median = np.full(pairs.n_workers, usual)
    median[n > 0] = values[((indptr[:-1] + indptr[1:]) // 2)[n > 0]]
    median = (n * median + FEW_PARTNERS * usual) / (n + FEW_PARTNERS)
    scale = max(float(np.median(median[n > 0])), 1e-6)
    by_chance = pairs.agreement - pairs.covariance
    expected = by_chance + median[pairs.first] * median[pairs.second] / scale
    return np.asarray(np.clip(expected, CERTAIN, 1 - CERTAIN))


def too_wrong(stance: Floats, n_classes: int) -> bool:
    r"""Return whether workers on the smaller side are more informative than wrong workers can be.

    A worker who is always right has a stance of :math:`\sqrt{1 - \sum_k \pi_k^2}`. A worker who is
    always wrong has minus :math:`1 / (K - 1)` of that, because excluding the right label is less
    informative than giving it. If the smaller side is further out, it is not just wrong: it agreed
    on something else, and the fit mistook that for the truth. Two classes are symmetric, so the
    test does not apply to them.

    Examples
    --------
    >>> too_wrong(np.array([0.2, 0.3, 0.2, -0.3, -0.3]), 3)
    False
    >>> too_wrong(np.array([0.2, 0.3, 0.2, -0.7, -0.7]), 3)
    True
    """
    larger = stance if np.sign(stance).sum() >= 0 else -stance
    furthest = np.sqrt(1 - 1 / n_classes) / max(n_classes - 1, 1)
    return bool((larger < -BEYOND * furthest).sum() >= 2)


class _RobustFactors:
    """Alternating least squares for the factors, with robust weights of the pairs."""

    def __init__(self, pairs: PairMoments) -> None:
        from scipy.sparse import csr_array

        J, n = pairs.n_workers, pairs.n_pairs
        tables = pairs.tables
        covariance = tables - tables.sum(axis=2)[:, :, None] * tables.sum(axis=1)[:, None, :]
        self.shape = (J, pairs.n_classes, pairs.n_classes - 1)
        # Every pair from both sides: the row of ``own``, the column of ``other``.
        self._own = np.concatenate([pairs.first, pairs.second])
        self._other = np.concatenate([pairs.second, pairs.first])
        self._covariance = np.concatenate([covariance, covariance.transpose(0, 2, 1)])
        precision = pairs.n_shared / (1 + pairs.n_shared * MODEL_ERROR**2)
        self._n = np.concatenate([precision, precision])
        self._sum = csr_array((np.ones(2 * n), (self._own, np.arange(2 * n))), shape=(J, 2 * n))

    def typical_factors(self, side: Floats, reference: Mask) -> Floats:
        r"""Return factors (J, K, K - 1) that are multiples of one another, by medians.

        If all covariances, summed over classes, are :math:`c_{jj'} = s_j s_{j'}`, a worker's median
        over its pairs with the reference is :math:`s_j` times the median :math:`s` of the
        reference. ``side`` (J,) has the signs.
        """
        _, K, rank = self.shape
        sign = np.where(side < 0, -1.0, 1.0)
        turned = np.trace(self._covariance, axis1=1, axis2=2) * sign[self._own] * sign[self._other]
        typical = self._medians(turned, reference[self._other])
        scale = np.sqrt(max(float(np.median(typical[reference])), 1e-6))
        basis = np.linalg.eigh(np.eye(K) - 1 / K)[1][:, 1:]  # sums to zero over labels
        return np.asarray((sign * typical / scale)[:, None, None] * basis / np.sqrt(rank))

    def main_axis(self) -> Floats:
        """Return the main axis (J,) of the covariances summed over classes, with arbitrary sign."""
        scalar = np.trace(self._covariance, axis1=1, axis2=2) * np.sqrt(self._n)
        _, vectors = self._eigen(scalar[:, None, None], self._own, self._other, 1)
        return np.asarray(vectors[:, 0])

    def _eigen(self, blocks: Floats, row: Any, column: Any, rank: int) -> tuple[Floats, Floats]:
        """Return the largest eigenvalues of a symmetric block matrix, and their eigenvectors."""
        from scipy.sparse import coo_array
        from scipy.sparse.linalg import eigsh

        K = blocks.shape[1]
        size = self.shape[0] * K
        if not blocks.any():
            return np.zeros(rank), np.zeros((size, rank))
        step = np.arange(K)
        rows = np.broadcast_to(row[:, None, None] * K + step[:, None], blocks.shape).ravel()
        columns = np.broadcast_to(column[:, None, None] * K + step, blocks.shape).ravel()
        matrix = coo_array((blocks.ravel(), (rows, columns)), shape=(size, size)).tocsr()
        if size <= max(DENSE_UP_TO, 3 * rank):
            values, vectors = np.linalg.eigh(matrix.toarray())
            return values[-rank:], vectors[:, -rank:]
        start = np.random.default_rng(0).standard_normal(size)  # otherwise ARPACK draws its own
        values, vectors = eigsh(matrix, k=rank, which="LA", v0=start, tol=1e-6)
        return values, vectors

    def run(self, factors: Floats, reference: Mask) -> Floats:
        """Return the factors (J, K, K - 1) of all workers, fitted to pairs with the reference."""
        _, _, rank = self.shape
        information = self._n * reference[self._other]
        for _ in range(SWEEPS):
            weight = information / (1 + (self._misfit(factors) / SCALE) ** 2) ** 2
            partner = factors[self._other]
            gram = self._add(weight[:, None, None] * np.matmul(partner.transpose(0, 2, 1), partner))
            right = self._add(weight[:, None, None] * np.matmul(self._covariance, partner))
            gram += SHRINKAGE * np.eye(rank)
            right += SHRINKAGE * one_dimensional(factors)
            solved = np.linalg.solve(gram, right.transpose(0, 2, 1)).transpose(0, 2, 1)
            factors = 0.5 * (factors + solved)  # all move at once: a full step would overshoot
        return factors

    def _medians(self, values: Floats, among: Mask) -> Floats:
        """Return every worker's median (J,) over some of the pairs; 0 without pairs."""
        rows = np.flatnonzero(among)
        rows = rows[np.lexsort((values[rows], self._own[rows]))]
        begin = np.searchsorted(self._own[rows], np.arange(self.shape[0] + 1))
        known = begin[1:] > begin[:-1]
        medians = np.zeros(self.shape[0])
        medians[known] = values[rows[((begin[:-1] + begin[1:]) // 2)[known]]]
        return medians

    def _misfit(self, factors: Floats) -> Floats:
        """Return the absolute residual of every pair, in standard errors."""
        model = np.matmul(factors[self._own], factors[self._other].transpose(0, 2, 1))
        return np.asarray(np.sqrt(((self._covariance - model) ** 2).sum(axis=(1, 2)) * self._n))

    def _add(self, values: Floats) -> Floats:
        total = self._sum @ values.reshape(len(values), -1)
        return np.asarray(total).reshape(self.shape[0], *values.shape[1:])


def main_axis_of(factors: Floats) -> Floats:
    """Return the direction (K · (K - 1),) in which the factors (J, K, K - 1) differ most."""
    flat = factors.reshape(len(factors), -1)
    if flat.shape[1] <= len(flat):
        return np.asarray(np.linalg.eigh(flat.T @ flat)[1][:, -1])
    axis = flat.T @ np.linalg.eigh(flat @ flat.T)[1][:, -1]  # many classes, few workers
    return np.asarray(axis / max(float(np.linalg.norm(axis)), 1e-300))


def one_dimensional(factors: Floats) -> Floats:
    """Project the factors onto their main axis: workers become multiples of one another."""
    flat, axis = factors.reshape(len(factors), -1), main_axis_of(factors)
    return np.asarray(np.outer(flat @ axis, axis).reshape(factors.shape))


def _tested(pairs: PairMoments, factors: Floats, reference: Mask) -> Dependence:
    """Test every pair's agreement against its expectation under the factors.

    The number of agreements is binomial. Its tail, as a normal score, is divided by the crowd's own
    spread where that is wider: tasks that are hard for all workers make all pairs slightly
    dependent, without collusion.
    """
    from scipy.special import betainc, ndtri

    tables, n = pairs.tables, pairs.n_shared
    by_chance = np.einsum("pl,pl->p", tables.sum(axis=2), tables.sum(axis=1))
    shared = np.einsum("pkr,pkr->p", factors[pairs.first], factors[pairs.second])
    expected = np.clip(by_chance + shared, CERTAIN, 1 - CERTAIN)
    same = pairs.agreement * n
    tail = np.where(same > 0, betainc(np.maximum(same, 1e-9), n - same + 1, expected), 1.0)
    z = np.clip(-ndtri(tail), -LARGEST_Z, LARGEST_Z)
    unexplained = _unexplained(pairs, z)
    if len(z):
        centre = float(np.median(z))
        spread = 1.4826 * float(np.median(np.abs(z - centre)))
        z = (z - max(centre, 0.0)) / max(spread, 1.0)
    p = upper_tail(z)
    return Dependence(
        pairs.first, pairs.second, n, pairs.agreement, expected, z, p, benjamini_hochberg(p),
        factors, reference, unexplained,
    )  # fmt: skip


def _unexplained(pairs: PairMoments, z: Floats) -> float:
    ends = np.concatenate([pairs.first, pairs.second])
    total = np.bincount(ends, minlength=pairs.n_workers)
    wrong = np.bincount(ends, np.tile(z > UNEXPLAINED, 2), pairs.n_workers)
    return float(np.mean(wrong[total > 0] / total[total > 0])) if len(z) else 0.0


def upper_tail(z: Floats) -> Floats:
    """Return the one-sided p-value of normal scores."""
    from scipy.special import ndtr

    return np.asarray(ndtr(-z))
