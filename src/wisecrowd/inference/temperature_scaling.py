r"""Temperature scaling of posteriors: :math:`q_i'(k) \propto q_i(k)^{1 / T}`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats

HOTTEST = 20.0


def log_posteriors(probas: Floats) -> Floats:
    """Return logarithms, with zero replaced by 1e-300."""
    return np.asarray(np.log(np.maximum(probas, 1e-300)))


def at_temperature(probas: Floats, temperature: float) -> Floats:
    """Return posteriors (n, K) at a temperature; labels and impossible classes do not change.

    Examples
    --------
    >>> at_temperature(np.array([[0.8, 0.2, 0.0]]), 2.0).round(3)
    array([[0.667, 0.333, 0.   ]])
    """
    return np.where(probas > 0, np.exp(_tempered(log_posteriors(probas), temperature)), 0.0)


def best_temperature(
    logs: Floats, truth: NDArray[np.integer[Any]], coldest: float = 1.0, hottest: float = HOTTEST
) -> float:
    """Return the temperature in a range that minimises the log loss of log-posteriors (n, K).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> honest = rng.dirichlet([1, 1, 1], 5000)
    >>> truth = (rng.random((5000, 1)) > honest.cumsum(axis=1)).sum(axis=1)
    >>> 1.9 < best_temperature(2 * np.log(honest), truth) < 2.1
    True
    """
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda x: log_loss_at(logs, truth, float(np.exp(x))),
        bounds=(np.log(coldest), np.log(hottest)),
        method="bounded",
    )
    best = float(np.exp(found.x))
    return best if log_loss_at(logs, truth, best) < log_loss_at(logs, truth, 1.0) else 1.0


def log_loss_at(logs: Floats, truth: NDArray[np.integer[Any]], temperature: float) -> float:
    """Return the mean log loss of log-posteriors (n, K) at a temperature."""
    return float(-_tempered(logs, temperature)[np.arange(len(truth)), truth].mean())


def _tempered(logs: Floats, temperature: float) -> Floats:
    """Divide by the temperature and normalise."""
    scores = logs / temperature
    return np.asarray(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
