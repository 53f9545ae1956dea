r"""Fit confusion matrices to all pair tables at once, by the Kullback-Leibler divergence.

.. math::
    \min_{\theta, \pi} \sum_{jj'} c_{jj'} KL\big( R_{jj'} \,\|\, \theta_j^T diag(\pi) \theta_{j'}
    \big)

With :math:`c` the number of shared tasks this is the composite likelihood of all pairs of labels.
Its EM, with the class of each pair as what is hidden, needs no step size and never gets worse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.families.moments import PairMoments
from wisecrowd.inference.monitor import Progress, report

Floats = NDArray[np.float64]

FLOOR = 1e-300  # a probability of zero whose logarithm and inverse are finite
RESOLUTION = 2.0**-52  # gains below this, in nats, are lost in rounding: an exact fit has settled


class PairFit(NamedTuple):
    """Confusion (J, K, K), class prior (K,), divergence after each step, whether it settled."""

    confusion: Floats
    class_prior: Floats
    divergence: tuple[float, ...]
    converged: bool


def fit_pairs(
    pairs: PairMoments,
    confusion: Floats,
    class_prior: Floats,
    *,
    weight: Floats | None = None,
    max_iter: int = 500,
    tol: float = 1e-6,
) -> PairFit:
    """Return the fit of all pair tables from a start.

    Parameters
    ----------
    pairs : PairMoments
        Of samples or of a population.
    confusion, class_prior : (n_workers, K, K), (K,)
        The start. What is zero stays zero. Workers without pairs keep theirs.
    weight : (n_pairs,), optional
        The weight of each pair's table; by default the number of shared tasks.
    max_iter, tol : int, float
        Stop after so many steps, or when a step lowers the divergence by less than this share of
        it or by less than a number close to one can show.
    """
    weight = pairs.n_shared if weight is None else weight
    total = float(weight.sum())
    if not total > 0:
        return PairFit(confusion, class_prior, (0.0,), True)
    share = weight / total
    history: list[float] = []
    converged = False
    for number in range(1, max_iter + 1):
        model = _model(pairs, confusion, class_prior)
        history.append(_divergence(pairs.tables, model, share))  # before this step
        report(Progress(number, max_iter, -history[-1]))
        confusion, class_prior = _step(pairs, share, model, confusion, class_prior)
        if number > 1 and history[-2] - history[-1] <= max(tol * history[-1], RESOLUTION):
            converged = True
            break
    history.append(_divergence(pairs.tables, _model(pairs, confusion, class_prior), share))
    return PairFit(confusion, class_prior, tuple(history[1:]), converged)


def _model(pairs: PairMoments, confusion: Floats, class_prior: Floats) -> Floats:
    """Return the tables (P, L, L') that the parameters predict."""
    both = class_prior[:, None] * confusion[pairs.second]
    return np.maximum(confusion[pairs.first].transpose(0, 2, 1) @ both, FLOOR)


def _divergence(tables: Floats, model: Floats, share: Floats) -> float:
    """Return the weighted mean divergence; without cancellation where the fit is nearly exact."""
    seen = tables > 0
    apart = np.where(seen, model / np.where(seen, tables, 1.0) - 1.0, 0.0)
    cells = np.where(seen, tables * (apart - np.log1p(apart)), model)
    return float(share @ cells.sum(axis=(1, 2)))


def _step(
    pairs: PairMoments, share: Floats, model: Floats, confusion: Floats, class_prior: Floats
) -> tuple[Floats, Floats]:
    """Return the parameters after one step."""
    one, two = confusion[pairs.first], confusion[pairs.second]  # (P, K, L)
    both = class_prior[:, None] * two
    ratio = share[:, None, None] * pairs.tables / model
    of_first = one * (both @ ratio.transpose(0, 2, 1))  # expected counts (P, K, L)
    of_second = both * (one @ ratio)
    counts = pairs.sum_by_worker(of_first, of_second)
    rows = counts.sum(axis=2, keepdims=True)
    updated = np.where(rows > 0, counts / np.where(rows > 0, rows, 1.0), confusion)
    mass = of_first.sum(axis=(0, 2))
    return updated, mass / mass.sum()
