"""Worker populations, and crowds composed of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import SMALLEST_NUMBER, check_integer, check_number
from wisecrowd.core.types import Codes, Floats
from wisecrowd.kinds.classes.families.label_law import LabelSampler


@dataclass
class Draft:
    """Everybody's labels before the populations that depend on others rewrite theirs.

    Attributes
    ----------
    task, worker, label : ndarray of shape (E,)
        Codes, sorted by (task, worker).
    truth : ndarray of shape (N,)
        True class of each task.
    confusion : ndarray of shape (J, K, K)
        Matrices, to be brought in line with what is rewritten.
    draws_alone : ndarray of bool, shape (J,)
        Workers whose labels are final already.
    law : LabelSampler
        How a label is drawn.
    """

    task: Codes
    worker: Codes
    label: Codes
    truth: Codes
    confusion: Floats
    draws_alone: npt.NDArray[np.bool_]
    law: LabelSampler

    def rows_of(self, members: Codes) -> npt.NDArray[np.intp]:
        """Positions of the members' annotations."""
        is_member = np.zeros(self.draws_alone.size, dtype=bool)
        is_member[members] = True
        return np.flatnonzero(is_member[self.worker])

    def opinion(self, task: Codes, worker: Codes, rng: np.random.Generator) -> Codes:
        """Labels that these workers gave to these tasks, or would give when they did not.

        What a worker would say is drawn once per (task, worker), so that all who ask hear the
        same.
        """
        n_workers = self.draws_alone.size
        wanted, inverse = np.unique(task.astype(np.int64) * n_workers + worker, return_inverse=True)
        place = np.minimum(np.searchsorted(self._keys, wanted), self._keys.size - 1)
        said = self.label[place]
        silent = self._keys[place] != wanted
        task, worker = (part.astype(np.int32) for part in np.divmod(wanted[silent], n_workers))
        said[silent] = self.law.draw(self.truth[task], worker, task, rng)
        return said[inverse]

    @cached_property
    def _keys(self) -> npt.NDArray[np.int64]:
        return self.task.astype(np.int64) * self.draws_alone.size + self.worker


class Population(ABC):
    r"""A kind of workers: a law of confusion matrices.

    A population says how its workers err, not how many there are: ``30 * population`` is a
    `Crowd` of thirty, and crowds add up. A population alone in a sum counts as one worker.

    Examples
    --------
    >>> from wisecrowd.simulate import Adversaries, OneCoinWorkers, Spammers
    >>> crowd = 30 * OneCoinWorkers(4, 2) + 5 * Spammers() + Adversaries()
    >>> crowd.n_workers
    36
    """

    kind: ClassVar[str]
    """The population's name in tables and on the command line."""

    labels_everything: ClassVar[bool] = False
    """Whether its workers label every task, whatever the assignment graph says."""

    @abstractmethod
    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw the workers' confusion matrices.

        Parameters
        ----------
        n_workers, n_classes : int
            How many matrices, of what size.
        rng : numpy.random.Generator
            The only source of randomness.

        Returns
        -------
        ndarray of shape (n_workers, n_classes, n_classes)
            ``[j, k, l]`` is the probability that worker j says l when the class is k.
        """

    def parts(self, n_workers: int) -> list[tuple[Population, int]]:
        """Split a number of workers over the populations that this one is made of."""
        return [(self, n_workers)]

    def __mul__(self, n_workers: int) -> Crowd:
        return Crowd([(self, n_workers)])

    __rmul__ = __mul__

    def __add__(self, other: Population | Crowd) -> Crowd:
        return Crowd([(self, 1)]) + other


class DependentPopulation(Population):
    """Workers whose labels depend on those of others: they rewrite what was drawn for them."""

    @abstractmethod
    def rewrite(self, draft: Draft, members: Codes, rng: np.random.Generator) -> None:
        """Change the labels of the members after everybody's were drawn.

        Parameters
        ----------
        draft : Draft
            All annotations, the truth and the confusion matrices; changed in place.
        members : ndarray of shape (n_members,)
            Codes of this population's workers.
        rng : numpy.random.Generator
            The only source of randomness.
        """


@dataclass(frozen=True, init=False)
class Crowd:
    """A number of workers of each population, in this order.

    Parameters
    ----------
    groups : iterable of (Population, int)
        Populations and how many workers each has.

    Examples
    --------
    >>> from wisecrowd.simulate import OneCoinWorkers, Spammers
    >>> crowd = Crowd([(OneCoinWorkers(4, 2), 3), (Spammers(), 2)])
    >>> crowd == 3 * OneCoinWorkers(4, 2) + 2 * Spammers()
    True
    >>> crowd.kinds.tolist()
    ['one-coin', 'one-coin', 'one-coin', 'spammers', 'spammers']
    """

    groups: tuple[tuple[Population, int], ...]

    def __init__(self, groups: Iterable[tuple[Population, int]]) -> None:
        flat: list[tuple[Population, int]] = []
        for population, n_workers in groups:
            if not isinstance(population, Population):
                raise ParameterError(f"{population!r} is not a worker population.")
            check_integer("number of workers", n_workers, 1, math.inf)
            flat += population.parts(int(n_workers))
        if not flat:
            raise ParameterError("A crowd needs at least one worker.")
        object.__setattr__(self, "groups", tuple(flat))

    @property
    def n_workers(self) -> int:
        """Number of workers of all populations together."""
        return sum(n_workers for _, n_workers in self.groups)

    @property
    def kinds(self) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
        """(J,) name of the population of every worker."""
        return self.per_worker([population.kind for population, _ in self.groups], object)

    def per_worker(self, values: Sequence[object], dtype: type) -> np.ndarray[Any, Any]:
        """(J,) the value of every worker, from one value per population."""
        return np.repeat(np.array(values, dtype), [n_workers for _, n_workers in self.groups])

    def members(self) -> list[tuple[Population, Codes]]:
        """List the populations with the codes of their workers."""
        ends = np.cumsum([n_workers for _, n_workers in self.groups])
        return [
            (population, np.arange(end - n_workers, end, dtype=np.int32))
            for (population, n_workers), end in zip(self.groups, ends, strict=True)
        ]

    def sample(self, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw everybody's confusion matrix, shape (J, K, K)."""
        return np.concatenate(
            [population.sample(n, n_classes, rng) for population, n in self.groups]
        )

    def __add__(self, other: Crowd | Population) -> Crowd:
        if isinstance(other, Population):
            other = Crowd([(other, 1)])
        if not isinstance(other, Crowd):
            return NotImplemented
        return Crowd(self.groups + other.groups)


@dataclass(frozen=True, init=False)
class PopulationMixture(Population):
    """Populations in given shares, for any number of workers.

    The shares are rounded to whole workers by the largest remainders, so that the numbers of
    each kind do not depend on the seed.

    Parameters
    ----------
    components : iterable of (Population, float)
        Populations and their shares, which need not sum to one.

    Examples
    --------
    >>> from wisecrowd.simulate import OneCoinWorkers, Spammers
    >>> crowd = 10 * PopulationMixture([(OneCoinWorkers(4, 2), 0.75), (Spammers(), 0.25)])
    >>> [(population.kind, n) for population, n in crowd.groups]
    [('one-coin', 8), ('spammers', 2)]
    """

    kind: ClassVar[str] = "mixture"
    components: tuple[tuple[Population, float], ...]

    def __init__(self, components: Iterable[tuple[Population, float]]) -> None:
        given = tuple(components)
        if not given:
            raise ParameterError("A mixture needs at least one population.")
        for _, share in given:
            check_number("share", share, SMALLEST_NUMBER)
        object.__setattr__(self, "components", tuple((one, float(share)) for one, share in given))

    def parts(self, n_workers: int) -> list[tuple[Population, int]]:
        """Apportion the workers; populations whose share rounds to zero are left out."""
        counts = apportion(n_workers, [share for _, share in self.components])
        return [
            part
            for (population, _), count in zip(self.components, counts, strict=True)
            if count
            for part in population.parts(count)
        ]

    def sample(self, n_workers: int, n_classes: int, rng: np.random.Generator) -> Floats:
        """Draw the confusion matrices of all components, in their order."""
        return Crowd([(self, n_workers)]).sample(n_classes, rng)


def apportion(total: int, shares: Sequence[float]) -> list[int]:
    """Split `total` into whole numbers proportional to `shares`, by the largest remainders.

    Examples
    --------
    >>> apportion(10, [1, 1, 1])
    [4, 3, 3]
    """
    quotas = np.asarray(shares, dtype=np.float64) / np.sum(shares) * total
    counts = np.floor(quotas).astype(int)
    # Rounding noise must not decide between equal remainders: the earlier share wins them.
    order = np.argsort(-np.round(quotas - counts, 9), kind="stable")
    counts[order[: total - counts.sum()]] += 1
    return [int(count) for count in counts]
