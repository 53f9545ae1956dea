"""Cuts between the classes of tasks on a latent level: from class shares, or from gold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.task_prior import TaskPrior

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]

GRID = np.linspace(-6.0, 6.0, 193)  # levels at which final posteriors are computed
PSEUDO_GOLD = 5.0  # gold tasks that the cuts to start from count for


def cuts_at_shares(shares: Floats, density: Floats, grid: Floats) -> Floats:
    """Return the cuts (K - 1,) below which a density on a grid has the given shares of classes.

    Examples
    --------
    >>> cuts_at_shares(np.array([0.25, 0.75]), np.ones(5), np.arange(5.0)).tolist()
    [0.75]
    """
    below = np.cumsum(density) - density / 2
    below /= density.sum()
    return np.asarray(np.interp(np.cumsum(shares)[:-1], below, grid))


def cuts_from_gold(level: Floats, gold: Codes, cuts: Floats, density: Floats, grid: Floats) -> (
    Floats
):  # fmt: skip
    r"""Return the cuts with the least absolute error on gold tasks.

    The absolute error is a sum over cuts, so that each cut ``k`` is found alone, among the given
    cut and the midpoints between gold tasks. It minimises

    .. math::
        \#\{z_i > k, x_i \le c\} + \#\{z_i \le k, x_i > c\} + \lambda |G(c) - G(c_k)|

    where ``G`` is the distribution of levels: the given cuts count for :math:`\lambda` gold tasks,
    and few gold tasks move them only a little. The minima of increasing ``k`` increase.

    Parameters
    ----------
    level, gold : (n,)
        Estimated level and true class of each gold task.
    cuts : (K - 1,)
        Cuts to start from.
    density, grid : (G,)
        Distribution of the levels of all tasks.

    Examples
    --------
    >>> grid = np.linspace(-3, 3, 61)
    >>> level, gold = np.array([-1.0, 0.5, 0.7, 2.0]), np.array([0, 0, 0, 1])
    >>> level, gold = np.repeat(level, 5), np.repeat(gold, 5)
    >>> cuts_from_gold(level, gold, np.array([0.0]), np.ones(61), grid).round(2).tolist()
    [1.35]
    """
    order = np.argsort(level, kind="stable")
    x, z = level[order], gold[order]
    below = np.cumsum(density) / density.sum()
    places = np.unique(x)
    middles = (places[1:] + places[:-1]) / 2
    found = np.empty(len(cuts))
    for k, cut in enumerate(cuts.tolist()):
        candidates = np.concatenate([[cut], middles, x[:1] - 1, x[-1:] + 1])
        n_below = np.searchsorted(x, candidates, side="right")
        above = np.concatenate([[0], np.cumsum(z > k)])
        wrong = above[n_below] + (len(z) - n_below) - (above[-1] - above[n_below])
        moved = np.abs(np.interp(candidates, grid, below) - np.interp(cut, grid, below))
        cost = wrong + PSEUDO_GOLD * moved
        near = np.flatnonzero(cost <= cost.min() + 1e-9)
        found[k] = candidates[near[np.argmin(np.abs(candidates[near] - cut))]]
    # Ties may be broken out of order; the mean of both envelopes treats both ends alike.
    up, down = np.maximum.accumulate(found), np.minimum.accumulate(found[::-1])[::-1]
    return np.asarray((up + down) / 2)


def between_cuts(q: Floats, cuts: Floats) -> Floats:
    """Return the probability between neighbouring cuts (n, K), of densities on the grid (n, G)."""
    below = np.cumsum(q, axis=1) - q / 2
    place = np.clip(np.searchsorted(GRID, cuts) - 1, 0, len(GRID) - 2)
    part = np.clip((cuts - GRID[place]) / (GRID[1] - GRID[0]), 0.0, 1.0)
    at = below[:, place] + part * (below[:, place + 1] - below[:, place])
    at = np.where(cuts <= GRID[0], 0.0, np.where(cuts >= GRID[-1], 1.0, at))
    ends = np.ones((len(q), 1))
    probas = np.maximum(np.diff(at, axis=1, prepend=0 * ends, append=ends), 0.0)
    return np.asarray(probas / probas.sum(axis=1, keepdims=True))


def normal_shares(cuts: Floats) -> Floats:
    """Return the probability of each class, (K,), for a standard normal level."""
    from scipy.special import ndtr

    return np.asarray(np.diff(ndtr(cuts), prepend=0.0, append=1.0))


def with_task_prior(probas: Floats, prior: TaskPrior, class_cuts: Floats) -> Floats:
    """Return the posterior with the task prior instead of the shares of the classes; with gold."""
    if not prior.rows.any():
        return probas
    n = len(probas)
    factor = prior.probabilities(n)
    if prior.given:
        factor = factor / np.maximum(normal_shares(class_cuts), 1e-12)
    table = probas * factor
    total = table.sum(axis=1, keepdims=True)
    table = np.where(total > 0, table, prior.probabilities(n))
    return np.asarray(table / table.sum(axis=1, keepdims=True))
