"""Graded responses: workers with a bias and a spread grade tasks on an ordered scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.graphs import Assignment, PerTask
from wisecrowd.core.parameter_checks import as_generator, check_integer, check_number
from wisecrowd.core.types import Codes, Floats
from wisecrowd.kinds.classes.container import CrowdLabels

LABELS_PER_TASK = 5


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedGrades:
    """Ordered labels with the levels of tasks and the parameters of workers behind them.

    Attributes
    ----------
    labels : CrowdLabels
        Labels with ordered classes; all ids are 0, 1, 2, ...
    truth : (n_tasks,) int32
        True class of each task.
    level : (n_tasks,)
        Latent level of each task; its class says between which cuts it lies.
    bias, spread : (n_workers,)
        Amount that a worker adds to all levels, and standard deviation of the worker's noise.
    cuts : (n_classes - 1,)
        Levels between neighbouring classes.
    """

    labels: CrowdLabels
    truth: Codes
    level: Floats
    bias: Floats
    spread: Floats
    cuts: Floats

    def __repr__(self) -> str:
        return f"SimulatedGrades({self.labels!r})"


def graded_responses(
    n_tasks: int,
    n_workers: int,
    assignment: Assignment | None = None,
    *,
    n_classes: int = 5,
    bias: float = 0.5,
    spread: float = 0.5,
    log_spread: float = 0.5,
    cuts: npt.ArrayLike | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> SimulatedGrades:
    r"""Simulate ordered labels by workers who are lenient or strict, and more or less precise.

    .. math::
        x_i \sim N(0, 1), \quad b_j \sim N(0, \text{bias}^2), \quad
        \log s_j \sim N(\log \text{spread}, \text{log\_spread}^2), \quad
        y_{ij} = \#\{k : c_k < x_i + b_j + s_j \epsilon_{ij}\}

    with :math:`\epsilon \sim N(0, 1)`. The true class of a task is the number of cuts below
    :math:`x_i`.

    Parameters
    ----------
    n_tasks, n_workers : int
    assignment : Assignment, optional
        Who labels what; by default five workers per task, or all if there are fewer.
    n_classes : int
    bias : float
        Standard deviation of the biases.
    spread, log_spread : float
        Median of the spreads, and standard deviation of their logarithms.
    cuts : (n_classes - 1,) increasing numbers, optional
        By default those that make all classes equally frequent.
    random_state : int, numpy.random.Generator or None, default 0

    Examples
    --------
    >>> made = graded_responses(100, 10, n_classes=4)
    >>> made.labels.classes.tolist(), made.labels.ordered, made.cuts.round(2).tolist()
    ([0, 1, 2, 3], True, [-0.67, 0.0, 0.67])
    """
    check_integer("n_tasks", n_tasks, 1)
    check_integer("n_workers", n_workers, 1)
    check_integer("n_classes", n_classes, 2, 1000)
    for name, value in (("bias", bias), ("spread", spread), ("log_spread", log_spread)):
        check_number(name, value, 0.0)
    borders = _cuts(cuts, n_classes)
    rng = as_generator(random_state)
    level = rng.normal(size=n_tasks)
    biases = bias * rng.normal(size=n_workers)
    spreads = spread * np.exp(log_spread * rng.normal(size=n_workers))
    graph = assignment or PerTask(min(LABELS_PER_TASK, n_workers))
    task, worker = graph.assign(n_tasks, n_workers, rng)
    seen = level[task] + biases[worker] + spreads[worker] * rng.normal(size=len(task))
    labels = CrowdLabels.from_arrays(
        task, worker, np.searchsorted(borders, seen), classes=np.arange(n_classes),
        tasks=np.arange(n_tasks), workers=np.arange(n_workers), ordered=True, duplicates="keep",
    )  # fmt: skip
    truth = np.searchsorted(borders, level).astype(np.int32)
    return SimulatedGrades(labels, truth, level, biases, spreads, borders)


def _cuts(given: Any, n_classes: int) -> Floats:
    from scipy.special import ndtri

    if given is None:
        return np.asarray(ndtri(np.arange(1, n_classes) / n_classes))
    try:
        cuts = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        cuts = np.empty(0)
    good = cuts.shape == (n_classes - 1,) and np.isfinite(cuts).all() and (np.diff(cuts) > 0).all()
    if not good:
        raise ParameterError(
            f"cuts must be {n_classes - 1} increasing numbers, one between neighbouring classes."
        )
    return cuts


def named_classes(
    n_classes: int = 0, classes: Sequence[str] | None = None
) -> tuple[dict[str, Any], Sequence[str] | None]:
    """Return the parameters of the simulator for so many or for these grades, and their names."""
    return {"n_classes": n_classes or len(classes or ())}, classes
