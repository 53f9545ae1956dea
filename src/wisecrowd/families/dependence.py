r"""Which pairs of workers agree more than their skills explain.

Labels that are independent given the class have covariances, over the tasks that two workers share,

.. math::
    C_{jj'}[l, l'] = R_{jj'}[l, l'] - R_{jj'}[l, \cdot]\, R_{jj'}[\cdot, l']
        = \theta_j^\top (\operatorname{diag}\pi - \pi\pi^\top)\, \theta_{j'} = F_j F_{j'}^\top

with factors :math:`F_j` of K × (K - 1): off the diagonal, the covariances of the whole crowd are of
low rank, and so is the matrix of agreements (at most K²). Workers who copy or collude break this
for the pairs among themselves and for no others. A fit that gives up a minority of the pairs
therefore finds the skills of everybody, whatever the colluders say, and what it gives up is the
collusion. There is no posterior in it that the colluders could capture.

The fit is robust regression: iteratively reweighted least squares with bounded influence, from
several starts, because a large group may capture one; of the solutions that one is taken which
leaves the fewest pairs unexplained.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.memory_check import require_memory
from wisecrowd.families.moments.pair_moments import PairMoments

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SWEEPS = 60
SCALE = 1.5  # residuals, in standard errors, from which on a pair loses its influence
MODEL_ERROR = 0.01  # no model of people is more exact than this, however many tasks they share
SHRINKAGE = 30.0  # tasks' worth of belief that workers differ in how good they are, and no further
DENSE_UP_TO = 150  # rows of a covariance matrix that is decomposed as a whole
CERTAIN = 0.02  # an expected agreement is never closer to 0 or 1 than this
BEYOND = 1.2  # times what is possible, for errors of estimation
UNEXPLAINED = 2.0  # standard errors
LARGEST_Z = 37.0  # beyond it the normal tail is no number any more


@dataclass(frozen=True, eq=False)
class Dependence:
    """Agreement of pairs beyond what skills explain, tested.

    Attributes
    ----------
    first, second : (n_pairs,) int32
        Codes of the two workers.
    n_shared : (n_pairs,)
        Tasks, by weight, that both labelled.
    agreement, expected : (n_pairs,)
        Share of equal labels, and what the two workers' skills make of it.
    z, p, q : (n_pairs,)
        Standardised excess, its one-sided p-value, and the p-value adjusted by Benjamini and
        Hochberg: calling all pairs with ``q <= 0.01`` dependent is wrong for one in a hundred.
    skill : (n_workers, K, K - 1)
        The factors; only their products are identified.
    reference : (n_workers,) bool
        Workers from whose pairs the skills were learned: everybody, or one camp.
    unexplained : float
        Share of a worker's pairs that agree more than they should by two standard errors, before
        the crowd's own spread is taken into account; the mean over workers, so that the few who
        labelled most do not decide.
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
    reference: Bools
    unexplained: float

    @property
    def excess(self) -> Floats:
        """(n_pairs,) agreement minus what is expected."""
        return self.agreement - self.expected

    def linked(self, level: float, least_excess: float) -> Bools:
        """Return which pairs (n_pairs,) are dependent: significantly, and by enough to matter."""
        return np.asarray((self.q <= level) & (self.excess >= least_excess))

    @cached_property
    def stance(self) -> Floats:
        """(n_workers,) position on the main axis of skills: the signs tell two camps apart."""
        if not self.skill.size:
            return np.zeros(len(self.skill))
        side = self.skill.reshape(len(self.skill), -1) @ main_axis_of(self.skill)
        return side if side.sum() >= 0 else -side


def explanations(pairs: PairMoments) -> Iterator[Dependence]:
    """Yield the tested fits from all starts; see the module's text.

    The starts take every worker's typical covariance with a reference, a median that no minority of
    copies can move. The reference is everybody, then one camp alone: the camps are the two signs on
    the main axis of all covariances.
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


def dependence(pairs: PairMoments, trusted: Bools | None = None) -> Dependence:
    """Return the explanation that leaves the fewest pairs unexplained.

    At least half of the crowd must be its reference. The pairs among a minority of colluders are
    few beside those among honest workers, and so are the pairs within several groups beside those
    between them. But a minority who agree very well may explain more than honest workers who hardly
    agree: such a fit is refused where it is impossible (:func:`too_wrong`). With ``trusted``
    workers their camp is the reference, however small it is.
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


def too_wrong(stance: Floats, n_classes: int) -> bool:
    r"""Return whether workers on the smaller side know more than one who is wrong can know.

    A worker who is always right has a stance of :math:`\sqrt{1 - \sum_k \pi_k^2}`, one who is
    always wrong minus :math:`1 / (K - 1)` of that: not to give the right label says less than to
    give it. If the smaller side is further out, it is not wrong about what the larger side is right
    about. It agreed on something else, and the fit took that for the truth. Two classes are
    symmetric and tell nothing.

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
    """Alternating least squares for the factors, pairs weighted by how well they are explained."""

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

    def typical_factors(self, side: Floats, reference: Bools) -> Floats:
        r"""Return factors (J, K, K - 1) that are multiples of one another, by medians.

        If all covariances, summed over classes, are :math:`c_{jj'} = s_j s_{j'}`, then a worker's
        median over its pairs with the reference is :math:`s_j` times the typical :math:`s` there;
        ``side`` (J,) has the signs.
        """
        _, K, rank = self.shape
        sign = np.where(side < 0, -1.0, 1.0)
        turned = np.trace(self._covariance, axis1=1, axis2=2) * sign[self._own] * sign[self._other]
        typical = self._medians(turned, reference[self._other])
        scale = np.sqrt(max(float(np.median(typical[reference])), 1e-6))
        basis = np.linalg.eigh(np.eye(K) - 1 / K)[1][:, 1:]  # what sums to zero over labels
        return np.asarray((sign * typical / scale)[:, None, None] * basis / np.sqrt(rank))

    def main_axis(self) -> Floats:
        """Return the main axis (J,) of the covariances summed over classes, whatever its sign."""
        scalar = np.trace(self._covariance, axis1=1, axis2=2) * np.sqrt(self._n)
        _, vectors = self._eigen(scalar[:, None, None], self._own, self._other, 1)
        return np.asarray(vectors[:, 0])

    def _eigen(self, blocks: Floats, row: Any, column: Any, rank: int) -> tuple[Floats, Floats]:
        """Return the largest eigenvalues of a symmetric matrix of blocks, and their vectors."""
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
        start = np.random.default_rng(0).standard_normal(size)  # else ARPACK draws its own
        values, vectors = eigsh(matrix, k=rank, which="LA", v0=start, tol=1e-6)
        return values, vectors

    def run(self, factors: Floats, reference: Bools) -> Floats:
        """Return the factors (J, K, K - 1) of everybody, learned from pairs with the reference."""
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
            factors = 0.5 * (factors + solved)  # all at once, so a full step would overshoot
        return factors

    def _medians(self, values: Floats, among: Bools) -> Floats:
        """Return every worker's median (J,) over some of the pairs, 0 where there are none."""
        rows = np.flatnonzero(among)
        rows = rows[np.lexsort((values[rows], self._own[rows]))]
        begin = np.searchsorted(self._own[rows], np.arange(self.shape[0] + 1))
        known = begin[1:] > begin[:-1]
        medians = np.zeros(self.shape[0])
        medians[known] = values[rows[((begin[:-1] + begin[1:]) // 2)[known]]]
        return medians

    def _misfit(self, factors: Floats) -> Floats:
        """Return the size of the residual of every pair in standard errors."""
        model = np.matmul(factors[self._own], factors[self._other].transpose(0, 2, 1))
        return np.asarray(np.sqrt(((self._covariance - model) ** 2).sum(axis=(1, 2)) * self._n))

    def _add(self, values: Floats) -> Floats:
        total = self._sum @ values.reshape(len(values), -1)
        return np.asarray(total).reshape(self.shape[0], *values.shape[1:])


def main_axis_of(factors: Floats) -> Floats:
    """Return the direction (K · (K - 1),) along which the factors (J, K, K - 1) differ most."""
    flat = factors.reshape(len(factors), -1)
    if flat.shape[1] <= len(flat):
        return np.asarray(np.linalg.eigh(flat.T @ flat)[1][:, -1])
    axis = flat.T @ np.linalg.eigh(flat @ flat.T)[1][:, -1]  # many classes, few workers
    return np.asarray(axis / max(float(np.linalg.norm(axis)), 1e-300))


def one_dimensional(factors: Floats) -> Floats:
    """Return the factors' part on their main axis: workers as multiples of one another."""
    flat, axis = factors.reshape(len(factors), -1), main_axis_of(factors)
    return np.asarray(np.outer(flat @ axis, axis).reshape(factors.shape))


def _tested(pairs: PairMoments, factors: Floats, reference: Bools) -> Dependence:
    """Test every pair's agreement against what the factors make of it.

    The count of agreements is binomial; its tail as a normal score is then set against the crowd's
    own spread, where that is wider: tasks that are hard for everybody make everybody dependent a
    little, and nobody a colluder.
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


def benjamini_hochberg(p: Floats) -> Floats:
    """Return adjusted p-values: rejecting where they are at most a keeps false discoveries below a.

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03, 0.5]))
    array([0.04      , 0.05333333, 0.05333333, 0.5       ])
    """
    order = np.argsort(p)[::-1]
    adjusted = np.minimum.accumulate(p[order] * len(p) / np.arange(len(p), 0, -1))
    result = np.empty_like(p)
    result[order] = np.minimum(adjusted, 1.0)
    return result
