"""Crowds that give numbers: bias, noise, gain, heavy tails and shared errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.graphs import Assignment, drawn_pairs, given_or_usual
from wisecrowd.core.memory_check import check_room
from wisecrowd.core.parameter_checks import (
    SMALLEST_NUMBER,
    as_generator,
    check_choice,
    check_integer,
    check_number,
)
from wisecrowd.core.types import Floats
from wisecrowd.kinds.numbers.container import CrowdNumbers

_BYTES_PER_LABEL = 60
_SCALES = ("linear", "log")


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedNumbers:
    """Numbers with everything that is known about how they came about.

    Attributes
    ----------
    data : CrowdNumbers
        The annotations; task and worker ids are 0, 1, 2, ..., also those without labels.
    truth : (n_tasks,)
        True numbers.
    bias, noise, gain : (n_workers,)
        Parameters of the workers, of the logarithms if the scale is "log". The noise of a member of
        the clique is without the shared error.
    clique : (n_workers,) bool
        Workers who share one error per task.
    """

    data: CrowdNumbers
    truth: Floats
    bias: Floats
    noise: Floats
    gain: Floats
    clique: npt.NDArray[np.bool_]

    def __repr__(self) -> str:
        return f"SimulatedNumbers({self.data!r})"


def numbers(
    n_tasks: int,
    n_workers: int,
    assignment: Assignment | None = None,
    *,
    mean: float = 0.0,
    spread: float = 1.0,
    noise: npt.ArrayLike = (0.3, 1.5),
    bias: float = 0.0,
    gain: float = 0.0,
    nu: float = np.inf,
    clique: int = 0,
    clique_error: float = 1.0,
    scale: str = "linear",
    random_state: int | np.random.Generator | None = 0,
) -> SimulatedNumbers:
    r"""Simulate workers who estimate numbers.

    .. math:: y_{ij} = \mu + b_j + g_j (z_i - \mu) + \sigma_j t_{ij} + [j \in C]\, h_i, \qquad
              z_i \sim N(\mu, \tau^2), \; t_{ij} \sim t_\nu, \; h_i \sim N(0, \eta^2)

    Truth, workers, graph and errors have random streams of their own, so that the same seed gives
    the same truth to other workers.

    Parameters
    ----------
    n_tasks, n_workers : int
    assignment : Assignment, optional
        The workers of each task; by default five per task, or all if there are fewer.
    mean, spread : float
        :math:`\mu` and :math:`\tau`.
    noise : (low, high) or array-like of shape (n_workers,)
        Range of the uniform distribution of :math:`\sigma_j`, or these themselves. Two workers
        need an array of length two: it is taken as their noise.
    bias, gain : float
        Standard deviations of :math:`b_j` around 0 and of :math:`g_j` around 1.
    nu : float
        Degrees of freedom; inf is normal.
    clique : int
        Number of workers, the last ones, who share the error :math:`h_i`.
    clique_error : float
        :math:`\eta`.
    scale : {"linear", "log"}
        With "log" labels and truth are the exponentials.
    random_state : int, numpy.random.Generator or None, default 0
        Seed; None for a different crowd every time.

    Returns
    -------
    SimulatedNumbers

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> made = simulate.numbers(100, 20, simulate.PerTask(4), bias=0.5, nu=4)
    >>> made
    SimulatedNumbers(CrowdNumbers(100 tasks, 20 workers, 400 annotations))
    >>> made.truth.shape, made.noise.shape
    ((100,), (20,))
    """
    _check(n_tasks, n_workers, spread, bias, gain, nu, clique, clique_error, scale)
    check_number("mean", mean, -1e9)
    of_truth, of_workers, of_graph, of_errors = as_generator(random_state).spawn(4)
    graph = given_or_usual(assignment, n_workers)
    expected = graph.expected_labels(n_tasks, n_workers)
    check_room(_BYTES_PER_LABEL * expected, f"About {expected:.3g} labels")
    z = spread * of_truth.normal(size=n_tasks)
    b, g = bias * of_workers.normal(size=n_workers), 1 + gain * of_workers.normal(size=n_workers)
    sigma = _noise(noise, n_workers, of_workers)
    is_member = np.arange(n_workers) >= n_workers - clique
    task, worker = drawn_pairs(graph, n_tasks, n_workers, of_graph)
    shared = clique_error * of_errors.normal(size=n_tasks)
    error = of_errors.normal(size=len(task))
    if nu < np.inf:
        error /= np.sqrt(of_errors.chisquare(nu, size=len(task)) / nu)
    value = mean + b[worker] + g[worker] * z[task] + sigma[worker] * error
    value += is_member[worker] * shared[task]
    truth = mean + z
    if scale == "log":
        value, truth = np.exp(value), np.exp(truth)
    data = CrowdNumbers(
        task=task, worker=worker, value=value, tasks=np.arange(n_tasks),
        workers=np.arange(n_workers),
    )  # fmt: skip
    return SimulatedNumbers(data, truth, b, sigma, g, is_member)


def _check(
    n_tasks: int,
    n_workers: int,
    spread: float,
    bias: float,
    gain: float,
    nu: float,
    clique: int,
    clique_error: float,
    scale: str,
) -> None:
    check_integer("n_tasks", n_tasks, 1)
    check_integer("n_workers", n_workers, 1)
    for name, value in (("spread", spread), ("bias", bias), ("gain", gain),
                        ("clique_error", clique_error)):  # fmt: skip
        check_number(name, value, 0.0)
    if nu != np.inf:
        check_number("nu", nu, SMALLEST_NUMBER)
    check_integer("clique", clique, 0, n_workers)
    check_choice("scale", scale, _SCALES)


def _noise(noise: npt.ArrayLike, n_workers: int, rng: np.random.Generator) -> Floats:
    """Return the noise (J,) of the workers, given or drawn from a range."""
    given = np.asarray(noise, dtype=np.float64)
    good = bool(np.isfinite(given).all() and (given >= 0).all())
    if good and given.shape == (n_workers,):
        return given
    if not good or given.shape != (2,) or given[0] > given[1]:
        raise ParameterError(
            "noise is not a range of numbers from 0 up or one number per worker; give (low, high) "
            f"or {n_workers} numbers."
        )
    return rng.uniform(given[0], given[1], size=n_workers)
