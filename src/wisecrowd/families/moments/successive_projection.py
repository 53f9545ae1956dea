r"""Successive projection: corners of the cloud that a worker's conditional label shares form.

Given that a partner gave label ``l'``, the shares of a worker's own labels are a mixture of the
rows of the worker's confusion matrix:

.. math::
    \frac{R_{jj'}[\cdot, l']}{\sum_l R_{jj'}[l, l']} = \sum_k P(z = k \mid y_{j'} = l') \theta_{jk}

If for every class some partner has a label that is used for this class alone, the rows themselves
are among these points, and they are the corners of the cloud. The successive projection algorithm
finds corners one after the other: the point farthest from the span of those found.
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

FULL_RANK = 1e-3  # least ratio of singular values of a table that tells all classes apart
EQUAL = 1e-9  # points farther by less than this share are as far
SWEEPS = 20  # rounds in which workers agree on an order of the classes


def multi_spa(pairs: PairMoments, *, noise: float = 0.0) -> MomentEstimate:
    """Return confusion matrices and class prior from pair tables by successive projection.

    Parameters
    ----------
    pairs : PairMoments
        Of samples or of a population.
    noise : float
        A corner is the mean of the worker's points whose squared distance from it is up to this
        many times what chance alone makes; at 0, as for a population, it is one point.
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
    """Return, by worker, the shares of the labels given each label of each usable partner.

    Partners are usable if the joint table has full rank.

    Returns
    -------
    owner : (n_points,) sorted
    points : (n_points, K) rows with sum one
    weight : (n_points,) of the shared tasks that each point rests on
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
    """Return K corners of each worker's points (J, K, K), one per row, and who has K of them."""
    K = points.shape[1]
    begin = np.searchsorted(owner, np.arange(n_workers))
    present = np.flatnonzero(np.bincount(owner, minlength=n_workers))
    identified = np.zeros(n_workers, dtype=bool)
    identified[present] = True
    at = np.zeros((n_workers, K), dtype=np.int64)  # which point each corner is
    residual = points.copy()
    usual = _likeness(owner, points, weight, n_workers)
    for k in range(K if len(present) else 0):
        size = np.einsum("ck,ck->c", residual, residual)
        top = np.zeros(n_workers)
        top[present] = np.maximum.reduceat(size, begin[present])
        identified &= top > FULL_RANK**2
        # Of equals the one that rests on most tasks, then the usual one: neither rounding nor the
        # order of ids must choose.
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
    """Return (n_points,) how alike each point and all of its worker's together are, rounded."""
    mean = np.stack([np.bincount(owner, weight * x, n_workers) for x in points.T], axis=1)
    total = np.maximum(mean.sum(axis=1), 1e-300)
    return np.asarray(np.round((points * mean[owner]).sum(axis=1) / total[owner], 9))


def _averaged(
    owner: Ints, points: Floats, weight: Floats, corners: Floats, at: Ints, noise: float
) -> Floats:
    r"""Return each corner as the mean of its worker's points that chance could have moved there.

    Two samples of :math:`n` and :math:`n'` labels with shares :math:`c` are
    :math:`\sum_l c_l (1 - c_l) (1 / n + 1 / n')` apart in expected squared distance.
    """
    J, K = corners.shape[:2]
    result = corners.copy()
    for k in range(K):
        corner, rests_on = corners[owner, k], weight[at[owner, k]]
        distance = ((points - corner) ** 2).sum(axis=1)
        spread = (corner * (1 - corner)).sum(axis=1) * (1 / weight + 1 / rests_on)
        # Small counts make the two sides equal: rounding must not choose then.
        near = np.flatnonzero(distance <= (1 + EQUAL) * noise * spread + 1e-300)
        mass = np.bincount(owner[near], weights=weight[near], minlength=J)
        for label in range(K):
            total = np.bincount(owner[near], weight[near] * points[near, label], J)
            share = total / np.where(mass > 0, mass, 1.0)
            result[:, k, label] = np.where(mass > 0, share, result[:, k, label])
    return result


def _own_names(corners: Floats, identified: Bools) -> Floats:
    """Return matrices in which every worker is right as often as the corners allow."""
    named = corners.copy()
    for j in np.flatnonzero(identified):
        named[j] = corners[j][best_names(corners[j])]
    return named


def _rematched(confusion: Floats, expected: Floats, known: Bools) -> Floats:
    """Return the matrices with their rows in the order of the expected ones nearest to them."""
    moved = confusion.copy()
    for j in np.flatnonzero(known):
        distance = ((confusion[j][:, None] - expected[j][None]) ** 2).sum(axis=2)
        moved[j] = confusion[j][best_names(-distance)]
    return moved
