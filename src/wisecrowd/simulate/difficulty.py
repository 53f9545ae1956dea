"""Tasks that are harder than others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import SMALLEST_NUMBER, check_number
from wisecrowd.inference.label_law import CumulativeTable, LabelSampler, Longs
from wisecrowd.simulate._checks import Codes, Floats

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
