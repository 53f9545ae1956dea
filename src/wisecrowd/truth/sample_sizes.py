"""How many known answers an interval or a comparison needs.

The factor of :func:`checks_needed` was measured: check lists need fewer tasks than random samples.
"""

from __future__ import annotations

import numpy as np

SAVING = 0.83  # variance of a check list over that of a random sample
# Tasks with which a person passes the alternative annotator test in 80% of the cases, by epsilon;
# interpolated from measured shares of 50, 100 and 200 tasks.
JUDGE_TASKS = {0.1: 146, 0.15: 73}


def checks_needed(
    half_width: float, accuracy: float, n_tasks: float = np.inf, level: float = 0.95
) -> float:
    r"""Return how many tasks of a check list measure an accuracy to ± a half width.

    .. math:: n_0 = .83 \, z^2 A (1 - A) / w^2 + 2, \qquad n = \frac{n_0}{1 + n_0 / N}

    Examples
    --------
    >>> [round(checks_needed(w, 0.85)) for w in (0.1, 0.05, 0.03)]
    [43, 165, 454]
    """
    n = SAVING * normal_quantile((1 + level) / 2) ** 2 * accuracy * (1 - accuracy) / half_width**2
    return float((n + 2) / (1 + (n + 2) / n_tasks))


def answers_needed(
    half_width: float, sd: float, correlation: float, n_tasks: float, level: float = 0.95
) -> float:
    r"""Return how many known answers estimate a mean to ± a half width, with predictions.

    .. math:: n_0 = z^2 \sigma^2 (1 - \rho^2) / w^2, \qquad n = \frac{n_0}{1 + n_0 / N}

    Examples
    --------
    >>> round(answers_needed(0.1, 0.5, 0.0, np.inf)), round(answers_needed(0.1, 0.5, 0.8, np.inf))
    (98, 37)
    """
    n = (normal_quantile((1 + level) / 2) * sd / half_width) ** 2 * (1 - correlation**2) + 2
    return float(n / (1 + n / n_tasks))


def judgements_needed(
    difference: float,
    sd: float,
    correlation: float,
    n_tasks: float = np.inf,
    power: float = 0.8,
    level: float = 0.95,
) -> float:
    r"""Return how many judgements separate two systems; NaN if no number of judgements does.

    With :math:`\sigma` the deviation of the differences between two systems on the same text, and
    :math:`\rho` their correlation with the predicted differences on N texts,

    .. math:: n = \frac{k (1 - \rho^2)}{\delta^2 - k \rho^2 / N}, \qquad
              k = (z_{1 - \alpha / 2} + z_{power})^2 \sigma^2

    If the denominator is not positive, more texts need labels.

    Examples
    --------
    >>> round(judgements_needed(0.1, 0.5, 0.0)), judgements_needed(0.1, 0.5, 0.9, n_tasks=100)
    (196, nan)
    """
    k = ((normal_quantile((1 + level) / 2) + normal_quantile(power)) * sd) ** 2
    below = difference**2 - k * correlation**2 / n_tasks
    return float(k * (1 - correlation**2) / below) if below > 0 else float("nan")


def normal_quantile(probability: float) -> float:
    """Return a quantile of the standard normal distribution."""
    from scipy.special import ndtri

    return float(ndtri(probability))
