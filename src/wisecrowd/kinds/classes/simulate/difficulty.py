"""Tasks that are harder than others, and workers whose ability meets their difficulty."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import LARGEST_NUMBER, SMALLEST_NUMBER, check_number
from wisecrowd.core.types import Codes, Floats, Longs
from wisecrowd.kinds.classes.families.label_law import CumulativeTable, LabelSampler
from wisecrowd.kinds.classes.simulate.confusion_workers import one_coin_confusion
from wisecrowd.kinds.classes.simulate.worker_population import Population

_LARGEST_BELOW_ONE = np.nextafter(1.0, 0.0)


class Difficulty(ABC):
    """One number per task, and how it changes the law of the labels."""

    kind: ClassVar[str]

    @abstractmethod
    def sample(self, n_tasks: int, rng: np.random.Generator) -> Floats:
        """Draw the tasks' numbers, shape (n_tasks,)."""

    def law(self, confusion: Floats, values: Floats) -> LabelSampler:
        """Combine workers and tasks; by default by guessing, see `BetaDifficulty`."""
        return GuessingLaw(confusion, values)


@dataclass(frozen=True)
class BetaDifficulty(Difficulty):
    r"""On a task of difficulty d everybody guesses with probability d.

    .. math:: p(y_{ij} = l \mid z_i = k) = (1 - d_i)\, \theta_j[k, l] + d_i / K, \qquad
              d_i \sim \text{Beta}(a, b)

    Parameters
    ----------
    a, b : float, default 1 and 3
        Parameters of the Beta distribution; the mean difficulty is a / (a + b).

    Examples
    --------
    >>> import numpy as np
    >>> BetaDifficulty(1, 3).sample(2, np.random.default_rng(0)).shape
    (2,)
    """

    kind: ClassVar[str] = "beta"
    a: float = 1.0
    b: float = 3.0

    def __post_init__(self) -> None:
        check_number("a", self.a, SMALLEST_NUMBER)
        check_number("b", self.b, SMALLEST_NUMBER)

    def sample(self, n_tasks: int, rng: np.random.Generator) -> Floats:
        """Draw the difficulties, shape (n_tasks,)."""
        return rng.beta(self.a, self.b, size=n_tasks)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class GivenDifficulty(Difficulty):
    """Difficulties in [0, 1] that are given: one for all tasks, or one each.

    Parameters
    ----------
    values : float or array-like of shape (n_tasks,)
        Probability that anybody guesses on the task, as in `BetaDifficulty`.

    Examples
    --------
    >>> import numpy as np
    >>> GivenDifficulty(0.5).sample(2, np.random.default_rng(0)).tolist()
    [0.5, 0.5]
    """

    kind: ClassVar[str] = "given"
    values: Floats

    def __init__(self, values: npt.ArrayLike) -> None:
        given = np.array(values, dtype=np.float64)
        if given.ndim > 1 or given.size == 0 or not ((given >= 0) & (given <= 1)).all():
            raise ParameterError(
                "`difficulty` must be one number between 0 and 1, or one such number per task."
            )
        given.flags.writeable = False
        object.__setattr__(self, "values", given)

    def __repr__(self) -> str:
        if self.values.ndim == 0:
            return f"GivenDifficulty({float(self.values)})"
        return f"GivenDifficulty({self.values.size} values)"

    def sample(self, n_tasks: int, rng: np.random.Generator) -> Floats:
        """Return what was given, shape (n_tasks,)."""
        if self.values.ndim == 1 and self.values.size != n_tasks:
            raise ParameterError(
                f"`difficulty` has {self.values.size} values, but there are {n_tasks} tasks."
            )
        return np.broadcast_to(self.values, (n_tasks,)).copy()


class GuessingLaw(LabelSampler):
    """The worker's row, mixed with a uniform guess by the task's difficulty."""

    def __init__(self, confusion: Floats, difficulty: Floats) -> None:
        self.n_classes = confusion.shape[1]
        self._table = CumulativeTable(confusion)
        self._difficulty = difficulty

    def pick(self, truth: Codes, worker: Codes, task: Codes, uniform: Floats) -> Longs:
        """Guess below the difficulty, and stretch what is left of the uniform number."""
        d = self._difficulty[task]
        guess = uniform < d
        known = np.divide(uniform - d, 1.0 - d, out=np.zeros_like(d), where=~guess)
        row = worker.astype(np.int64) * self.n_classes + truth
        label = self._table.search(row, np.minimum(known, _LARGEST_BELOW_ONE))
        guessed = uniform[guess] / d[guess] * self.n_classes
        label[guess] = np.minimum(guessed.astype(np.int64), self.n_classes - 1)
        return label


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
