r"""Successive projection: confusion rows as the corners of conditional label shares.

Given a partner's label ``l'``, the shares of a worker's own labels are a mixture of the rows of the
worker's confusion matrix:

.. math::
    \frac{R_{jj'}[\cdot, l']}{\sum_l R_{jj'}[l, l']} = \sum_k P(z = k \mid y_{j'} = l') \theta_{jk}

If for every class some partner has a label that is used only for this class, the rows themselves
are among these points, and they are the corners of the point cloud. The successive projection
algorithm finds corners one by one: the next is the point farthest from the span of those found.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.families.moments.moment_method import (
    MomentEstimate,
    best_names,
    prior_from_pairs,
    regressed,
)
from wisecrowd.families.moments.pair_moments import PairMoments

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]
Bools = NDArray[np.bool_]

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
    confusion = _own_names(corners, identified)
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
) -> tuple[Floats, Bools]:
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


def _own_names(corners: Floats, identified: Bools) -> Floats:
    """Order the rows so that every worker is right as often as the corners allow."""
    named = corners.copy()
    for j in np.flatnonzero(identified):
        named[j] = corners[j][best_names(corners[j])]
    return named


def _rematched(confusion: Floats, expected: Floats, known: Bools) -> Floats:
    """Order the rows of the matrices like the nearest expected ones."""
    moved = confusion.copy()
    for j in np.flatnonzero(known):
        distance = ((confusion[j][:, None] - expected[j][None]) ** 2).sum(axis=2)
        moved[j] = confusion[j][best_names(-distance)]
    return moved
