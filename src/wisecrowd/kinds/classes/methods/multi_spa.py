r"""Successive projection on the pair tables of every worker.

Given a partner's label ``l'``, the shares of a worker's own labels are a mixture of the rows of the
worker's confusion matrix:

.. math::
    \frac{R_{jj'}[\cdot, l']}{\sum_l R_{jj'}[l, l']} = \sum_k P(z = k \mid y_{j'} = l') \theta_{jk}

If for every class some partner has a label that is used only for this class, the rows themselves
are among these points, and they are the corners of the point cloud. The successive projection
algorithm finds corners one by one: the next is the point farthest from the span of those found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.types import Floats, Ints, Mask
from wisecrowd.kinds.classes.families.moments.moment_method import (
    MomentEstimate,
    PairMethod,
    best_names,
    prior_from_pairs,
    regressed,
)
from wisecrowd.kinds.classes.families.moments.pair_moments import PairMoments

FULL_RANK = 1e-3  # smallest ratio of singular values of a usable table
EQUAL = 1e-9  # relative difference of distances that counts as a tie
SWEEPS = 20  # maximum number of rounds that align the order of the classes


def multi_spa(pairs: PairMoments, *, noise: float = 0.0) -> MomentEstimate:
    """Estimate confusion matrices and class prior from pair tables by successive projection.

    Parameters
    ----------
    pairs : PairMoments
        Moments of samples or of a population.
    noise : float
        Noise tolerance. A corner is the mean of the worker's points within this many times the
        squared distance that chance explains; at 0, as for a population, it is one point.
    """
    owner, points, weight = conditional_shares(pairs)
    corners, identified = corners_of(owner, points, weight, pairs.n_workers, noise)
    confusion = corners.copy()
    for j in np.flatnonzero(identified):  # right as often as the corners allow
        confusion[j] = corners[j][best_names(corners[j])]
    for _ in range(SWEEPS):
        prior = prior_from_pairs(pairs, confusion, identified)
        expected, determined = regressed(pairs, confusion, prior, identified)
        moved = _rematched(confusion, expected, identified & determined)
        if np.array_equal(moved, confusion):
            break
        confusion = moved
    prior = prior_from_pairs(pairs, confusion, identified)
    return MomentEstimate(confusion, prior, identified, pairs.parts()[0], pairs)


def conditional_shares(pairs: PairMoments) -> tuple[Ints, Floats, Floats]:
    """Return, by worker, the label shares given each label of each usable partner.

    Partners are usable if the joint table has full rank.

    Returns
    -------
    owner : (n_points,) sorted
    points : (n_points, K) rows with sum one
    weight : (n_points,) weight of the shared tasks behind each point
    """
    K = pairs.n_classes
    indptr, _, pair = pairs.partners
    owner = np.repeat(np.arange(pairs.n_workers), np.diff(indptr))
    singular = np.linalg.svd(pairs.tables, compute_uv=False)
    usable = singular[:, -1] > FULL_RANK * singular[:, 0]
    kept = usable[pair]
    columns = pairs.oriented(pairs.counts)[kept].transpose(0, 2, 1).reshape(-1, K)
    owner = np.repeat(owner[kept], K)
    weight = columns.sum(axis=1)
    kept = weight > 0
    return owner[kept], columns[kept] / weight[kept, None], weight[kept]


def corners_of(
    owner: Ints, points: Floats, weight: Floats, n_workers: int, noise: float
) -> tuple[Floats, Mask]:
    """Return K corners of each worker's points (J, K, K), one per row, and who has K corners."""
    K = points.shape[1]
    begin = np.searchsorted(owner, np.arange(n_workers))
    present = np.flatnonzero(np.bincount(owner, minlength=n_workers))
    identified = np.zeros(n_workers, dtype=bool)
    identified[present] = True
    at = np.zeros((n_workers, K), dtype=np.int64)  # the point of each corner
    residual = points.copy()
    usual = _likeness(owner, points, weight, n_workers)
    for k in range(K if len(present) else 0):
        size = np.einsum("ck,ck->c", residual, residual)
        top = np.zeros(n_workers)
        top[present] = np.maximum.reduceat(size, begin[present])
        identified &= top > FULL_RANK**2
        # Ties go to the point with most tasks, then to the most typical one: neither rounding nor
        # the order of ids must decide.
        farthest = np.flatnonzero(size >= (1 - EQUAL) * top[owner])[::-1]
        farthest = farthest[np.lexsort((usual[farthest], weight[farthest].round(9)))]
        at[owner[farthest], k] = farthest
        direction = residual[at[:, k]] / np.sqrt(np.maximum(top, 1e-300))[:, None]
        along = np.einsum("ck,ck->c", residual, direction[owner])
        residual -= along[:, None] * direction[owner]
    corners = np.full((n_workers, K, K), 1 / K)
    corners[present] = points[at[present]]
    if noise > 0:
        corners = _averaged(owner, points, weight, corners, at, noise)
    return corners, identified


def _likeness(owner: Ints, points: Floats, weight: Floats, n_workers: int) -> Floats:
    """Return the rounded similarity (n_points,) of each point to all points of its worker."""
    mean = np.stack([np.bincount(owner, weight * x, n_workers) for x in points.T], axis=1)
    total = np.maximum(mean.sum(axis=1), 1e-300)
    return np.asarray(np.round((points * mean[owner]).sum(axis=1) / total[owner], 9))


def _averaged(
    owner: Ints, points: Floats, weight: Floats, corners: Floats, at: Ints, noise: float
) -> Floats:
    r"""Return each corner as the mean of its worker's points that chance could have moved.

    Two samples of :math:`n` and :math:`n'` labels with shares :math:`c` are
    :math:`\sum_l c_l (1 - c_l) (1 / n + 1 / n')` apart in expected squared distance.
    """
    J, K = corners.shape[:2]
    result = corners.copy()
    for k in range(K):
        corner, rests_on = corners[owner, k], weight[at[owner, k]]
        distance = ((points - corner) ** 2).sum(axis=1)
        spread = (corner * (1 - corner)).sum(axis=1) * (1 / weight + 1 / rests_on)
        # Small counts make the two sides equal; then rounding must not decide.
        near = np.flatnonzero(distance <= (1 + EQUAL) * noise * spread + 1e-300)
        mass = np.bincount(owner[near], weights=weight[near], minlength=J)
        for label in range(K):
            total = np.bincount(owner[near], weight[near] * points[near, label], J)
            share = total / np.where(mass > 0, mass, 1.0)
            result[:, k, label] = np.where(mass > 0, share, result[:, k, label])
    return result


def _rematched(confusion: Floats, expected: Floats, known: Mask) -> Floats:
    """Order the rows of the matrices like the nearest expected ones."""
    moved = confusion.copy()
    for j in np.flatnonzero(known):
        distance = ((confusion[j][:, None] - expected[j][None]) ** 2).sum(axis=2)
        moved[j] = confusion[j][best_names(-distance)]
    return moved


@dataclass(eq=False, repr=False, kw_only=True)
class MultiSPA(PairMethod):
    r"""Confusion matrices by successive projection: algebra on pair tables, without iterations.

    .. math::
        \frac{R_{jj'}[\cdot, l']}{\sum_l R_{jj'}[l, l']} = \sum_k P(z = k \mid y_{j'} = l')
        \theta_{jk}

    The rows of a worker's confusion matrix are the corners of these points, taken over all partners
    and their labels, if each class has an expert among the partners: a worker with a label that is
    used only for this class.

    Use it when EM needs a start that does not depend on the vote, and every class has experts.
    Cost: O(p K³) for p pairs of workers who share tasks.

    Parameters
    ----------
    noise : float
        Noise tolerance. A corner is the mean of the worker's points within this many times the
        squared distance that chance explains; at 0 it is the farthest point itself.
    class_prior, min_shared, max_pairs, random_state
        See :class:`~wisecrowd.kinds.classes.families.moments.moment_method.PairMethod`.

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
    class_prior_ : (n_classes,)
        The least-squares fit to all tables, on the simplex.
    identified_ : (n_workers,) bool
        Whether the worker's own points have as many corners as there are classes.

    Notes
    -----
    The order of the classes is found for all workers together: each worker's rows are matched, by
    assignment, to the order that fits the tables with all others best, until nothing changes. The
    classes are named so that the workers are right most often. For gold labels, unidentified
    workers and zeros, see :mod:`wisecrowd.kinds.classes.families.moments.moment_method`. The only
    expert of a class is not estimated exactly, because its partners include no expert.

    References
    ----------
    S. Ibrahim, X. Fu, N. Kargas and K. Huang (2019). Crowdsourcing via pairwise co-occurrences:
    identifiability and algorithms. NeurIPS 32, 7847-7857.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> votes = [[0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]]
    >>> MultiSPA().fit(CrowdLabels.from_matrix(votes)).labels_
    array([0, 1, 0, 1, 0, 1])
    """

    noise: float = 1.0
    class_prior: Any = "auto"
    min_shared: Any = "auto"
    max_pairs: int = 200_000
    random_state: Any = 0

    promises: ClassVar[Tags] = Tags(
        inductive=True, confusion=True, likelihood=True, pooled=True, shardable=True
    )
    footprint = Footprint(label=43.2, cell=30.7, confusion=100.0, pair_table=35.1)
    limits: ClassVar[Limits] = {"noise": Number(0.0)}

    def _estimate(self, problem: Problem) -> MomentEstimate:
        labels, rng = problem.data, problem.rng
        pairs = self._pairs(labels, rng)
        return multi_spa(pairs, noise=self.noise)
