"""Abilities of workers times easiness of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.parameter_checks import LARGEST_NUMBER, check_number
from wisecrowd.inference.label_law import CumulativeTable, LabelSampler, Longs
from wisecrowd.simulate._checks import Codes, Floats
from wisecrowd.simulate.difficulty import Difficulty
from wisecrowd.simulate.one_coin_workers import one_coin_confusion
from wisecrowd.simulate.worker_population import Population


def _check_normal(mean: object, sd: object) -> None:
    check_number("mean", mean, -LARGEST_NUMBER)
    check_number("sd", sd, 0.0)


def _sigmoid(x: Floats) -> Floats:
    # tanh does not overflow where exp(-x) would.
    value: Floats = 0.5 * (1.0 + np.tanh(0.5 * x))
    return value


def _logit(p: Floats) -> Floats:
    with np.errstate(divide="ignore"):  # a perfect worker has infinite ability
        value: Floats = np.log(p) - np.log1p(-p)
    return value


@dataclass(frozen=True)
class GLADWorkers(Population):
    r"""Workers with a normal ability; the confusion matrix is that on a task of easiness one.

    .. math:: \alpha_j \sim N(\text{mean}, \text{sd}^2), \qquad
              \theta_j[k, k] = \sigma(\alpha_j), \quad \text{wrong labels spread evenly}

    Parameters
    ----------
    mean, sd : float, default 1 and 1
        Of the ability; below zero a worker is adversarial.

    References
    ----------
    J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma, J. Movellan (2009). Whose vote should count
    more. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> confusion = GLADWorkers(2, 0).sample(1, 3, np.random.default_rng(0))
    >>> GLADWorkers.ability(confusion).round(6).tolist()
    [2.0]
    """

    kind: ClassVar[str] = "glad"
    mean: float = 1.0
    sd: float = 1.0

    def __post_init__(self) -> None:
        _check_normal(self.mean, self.sd)

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw abilities; shape (n_workers, n_classes, n_classes)."""
        ability = rng.normal(self.mean, self.sd, size=n_workers)
        return one_coin_confusion(_sigmoid(ability), n_classes)

    @staticmethod
    def ability(confusion: Floats) -> Floats:
        r"""Read :math:`\alpha` (J,) back from the matrices."""
        return _logit(confusion[:, 0, 0])


@dataclass(frozen=True)
class GLADDifficulty(Difficulty):
    r"""Tasks with a log-normal easiness that multiplies the log-odds of being right.

    .. math:: \beta_i = e^{b_i}, \; b_i \sim N(\text{mean}, \text{sd}^2), \qquad
              p(y_{ij} = z_i = k) = \sigma\bigl(\beta_i \operatorname{logit} \theta_j[k, k]\bigr)

    and wrong labels keep their proportions. With `GLADWorkers`, or any one-coin population, this
    is GLAD with :math:`\alpha_j = \operatorname{logit} \theta_j[k, k]`; other populations are
    sharpened (:math:`\beta_i > 1`) or blurred in the same manner.

    Parameters
    ----------
    mean, sd : float, default 1 and 1
        Of the logarithm of the easiness.

    Examples
    --------
    >>> import numpy as np
    >>> GLADDifficulty(0, 0).sample(2, np.random.default_rng(0)).tolist()
    [1.0, 1.0]
    """

    kind: ClassVar[str] = "glad"
    mean: float = 1.0
    sd: float = 1.0

    def __post_init__(self) -> None:
        _check_normal(self.mean, self.sd)

    def sample(self, n_tasks: int, rng: np.random.Generator) -> Floats:
        """Draw the easiness of each task, shape (n_tasks,)."""
        return np.exp(rng.normal(self.mean, self.sd, size=n_tasks))

    def law(self, confusion: Floats, values: Floats) -> LabelSampler:
        """Combine abilities and easiness."""
        return EasinessLaw(confusion, values)


class EasinessLaw(LabelSampler):
    """Right with the sharpened probability, else the worker's own wrong labels."""

    def __init__(self, confusion: Floats, easiness: Floats) -> None:
        self.n_classes = confusion.shape[1]
        self._easiness = easiness
        diagonal = np.arange(self.n_classes)
        self._log_odds = _logit(np.minimum(confusion[:, diagonal, diagonal], 1.0)).ravel()
        wrong = confusion.copy()
        wrong[:, diagonal, diagonal] = 0.0
        # Rows of workers who are never wrong are never searched but must have a sum.
        empty = wrong.sum(axis=2) <= 0
        wrong[empty] = 1.0
        self._wrong = CumulativeTable(wrong)

    def pick(self, truth: Codes, worker: Codes, task: Codes, uniform: Floats) -> Longs:
        """Compare with the accuracy first, and stretch the rest over the wrong labels."""
        row = worker.astype(np.int64) * self.n_classes + truth
        accuracy = _sigmoid(self._easiness[task] * self._log_odds[row])
        label = truth.astype(np.int64)
        miss = uniform >= accuracy
        left = (uniform[miss] - accuracy[miss]) / (1.0 - accuracy[miss])
        label[miss] = self._wrong.search(row[miss], np.minimum(left, np.nextafter(1.0, 0.0)))
        return label
