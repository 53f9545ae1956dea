"""Simulated votes on sameness: items in clusters, and workers with two rates of errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import as_generator, check_integer
from wisecrowd.core.types import Floats
from wisecrowd.kinds.same.container import ANSWERS, CrowdSame


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedSame:
    """Votes on sameness and what they were drawn from.

    Attributes
    ----------
    data : CrowdSame
    cluster : (n_items,) int
        True clusters.
    same_rate, different_rate : (n_workers,)
        P(says same | same) and P(says different | different).
    """

    data: CrowdSame
    cluster: NDArray[np.int64]
    same_rate: Floats
    different_rate: Floats

    def __repr__(self) -> str:
        return f"SimulatedSame({self.data!r})"

    @property
    def truth(self) -> dict[Any, int]:
        """True clusters by item, as ``score`` takes them."""
        return dict(zip(self.data.items.tolist(), self.cluster.tolist(), strict=True))


def same_votes(
    n_items: int,
    n_workers: int,
    n_votes: int,
    n_clusters: int = 5,
    *,
    same_rate: Any = (8.0, 2.0),
    different_rate: Any = (9.0, 1.0),
    random_state: Any = None,
) -> SimulatedSame:
    """Simulate votes on random pairs of items by random workers.

    Parameters
    ----------
    n_items, n_workers, n_votes : int
    n_clusters : int
        Clusters of equal probability.
    same_rate, different_rate : (a, b) of a Beta distribution, or one number for all workers
        Rates of right answers to pairs of the same cluster and of different ones.
    random_state : int, Generator or None

    Examples
    --------
    >>> made = same_votes(10, 4, 60, 2, random_state=0)
    >>> made.data.n_items, made.data.n_annotations
    (10, 60)
    """
    check_integer("n_items", n_items, 2)
    for name, size in (("n_workers", n_workers), ("n_votes", n_votes), ("n_clusters", n_clusters)):
        check_integer(name, size, 1)
    rng = as_generator(random_state)
    cluster = rng.integers(0, n_clusters, n_items)
    s = _rates("same_rate", same_rate, n_workers, rng)
    t = _rates("different_rate", different_rate, n_workers, rng)
    left = rng.integers(0, n_items, n_votes)
    right = (left + rng.integers(1, n_items, n_votes)) % n_items
    worker = rng.integers(0, n_workers, n_votes)
    is_same = cluster[left] == cluster[right]
    is_right = rng.random(n_votes) < np.where(is_same, s[worker], t[worker])
    answer = np.array(ANSWERS, dtype=object)[(is_same == is_right).astype(np.int64)]
    data = CrowdSame.from_arrays(
        None, worker, left, right, answer, items=np.arange(n_items), workers=np.arange(n_workers)
    )
    return SimulatedSame(data, cluster, s, t)


def _rates(name: str, given: Any, n_workers: int, rng: np.random.Generator) -> Floats:
    """Return a rate for every worker."""
    values = np.atleast_1d(np.asarray(given, dtype=np.float64))
    if values.shape == (1,) and 0 <= values[0] <= 1:
        return np.full(n_workers, values[0])
    if values.shape == (2,) and (values > 0).all() and np.isfinite(values).all():
        return np.asarray(rng.beta(values[0], values[1], n_workers))
    raise ParameterError(
        f"{name} is {given!r}; give a rate from 0 to 1, or the two positive parameters of a Beta "
        "distribution."
    )
