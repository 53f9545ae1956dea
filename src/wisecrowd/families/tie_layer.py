r"""Probability of ties, for models that only know wins.

A model without ties gives a logit :math:`x` of left against right. The layer adds ties as Davidson
does, with a scale, because half-won ties shrink scores:

.. math:: p(\text{left}, \text{right}, \text{tie}) \propto (e^{a x / 2}, e^{-a x / 2}, e^\theta).

Both parameters maximise the likelihood of the votes of the fit, so that all methods for pairs have
probabilities of the same three outcomes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.families.logistic import log_softmax_rows

Floats = NDArray[np.float64]

MOST_ROWS = 20_000  # above, votes with nearly equal logits are counted together
BINS = 4096
PSEUDO = 0.5  # ties, and decided votes on equal items, that are added
FARTHEST = 30.0


def fit_tie_layer(logit: Floats, counts: Floats) -> Floats:
    """Return scale and level (2,) of the layer.

    Without ties the scale is 1, and the level is that of half a tie.

    Parameters
    ----------
    logit : (n_rows,)
    counts : (n_rows, 3)
        Weight of the votes for left, right and tie.

    Examples
    --------
    >>> fit_tie_layer(np.zeros(1), np.array([[30.0, 30.0, 60.0]])).round(2).tolist()
    [1.0, 0.69]
    """
    ties, decided = float(counts[:, 2].sum()), float(counts[:, :2].sum())
    if ties == 0:
        return np.array([1.0, np.log(2 * PSEUDO / (decided + PSEUDO))])
    size = np.abs(logit)
    better = np.where((logit > 0)[:, None], counts, counts[:, [1, 0, 2]])
    if len(size) > MOST_ROWS:
        size, better = _binned(size, better)
    size = np.append(size, 0.0)
    better = np.vstack([better, [[PSEUDO / 2, PSEUDO / 2, PSEUDO]]])
    scale, level = 1.0, float(np.log(2 * (ties + PSEUDO) / (decided + PSEUDO)))
    total = better.sum(axis=1)
    for _ in range(50):
        p = np.exp(tie_log_probas(size, np.array([scale, level])))
        half = size / 2
        signed = p[:, 0] - p[:, 1]
        gradient = np.array([
            half @ (better[:, 0] - better[:, 1] - total * signed) - (scale - 1),
            (better[:, 2] - total * p[:, 2]).sum(),
        ])  # fmt: skip
        cross = float((total * half * signed) @ p[:, 2])
        hessian = np.array([
            [1 + (total * half**2) @ (p[:, 0] + p[:, 1] - signed**2), -cross],
            [-cross, total @ (p[:, 2] * (1 - p[:, 2]))],
        ])  # fmt: skip
        step = np.clip(np.linalg.solve(hessian, gradient), -1, 1)
        scale, level = float(scale + step[0]), float(level + step[1])
        if np.abs(step).max() < 1e-10:
            break
    return np.array([scale, level])


def _binned(size: Floats, counts: Floats) -> tuple[Floats, Floats]:
    width = max(float(size.max()), 1e-9) / BINS
    place = np.minimum((size / width).astype(np.int64), BINS - 1)
    weight = counts.sum(axis=1)
    total = np.bincount(place, weight, BINS)
    used = total > 0
    mean = np.bincount(place, weight * size, BINS)[used] / total[used]
    sums = [np.bincount(place, counts[:, k], BINS)[used] for k in range(3)]
    return mean, np.stack(sums, axis=1)


def tie_log_probas(logit: Floats, layer: Floats) -> Floats:
    """Return the log-probabilities (n_rows, 3) of left, right and tie."""
    half = np.clip(layer[0] * logit / 2, -FARTHEST * 10, FARTHEST * 10)
    return log_softmax_rows(half, -half, np.full(len(half), layer[1]))
