"""Crowds that tick classes: sets from prototypes, and workers who miss and invent classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.graphs import Assignment, drawn_pairs, given_or_usual
from wisecrowd.core.memory_check import check_room
from wisecrowd.core.parameter_checks import as_generator, check_integer, check_number
from wisecrowd.core.types import Floats
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.sets.set_text import joined_sets

_BYTES_PER_TICK = 30


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedSets:
    """Sets of classes with everything that is known about how they came about.

    Attributes
    ----------
    data : CrowdSets
        The annotations; task and worker ids are 0, 1, 2, ..., also those without labels.
    truth : (n_tasks,) str
        True set of each task, with ``|`` between the classes.
    members : (n_tasks, n_classes) bool
        The same as a table.
    prototypes : (n_prototypes, n_classes)
        Probability of each class in each prototype.
    prototype : (n_tasks,) int
        Prototype of each task.
    sensitivity, false_alarm : (n_workers, n_classes)
        Rates at which workers tick classes that are there, and that are not.
    """

    data: CrowdSets
    truth: NDArray[np.object_]
    members: NDArray[np.bool_]
    prototypes: Floats
    prototype: NDArray[np.int64]
    sensitivity: Floats
    false_alarm: Floats

    def __repr__(self) -> str:
        return f"SimulatedSets({self.data!r})"


def sets(
    n_tasks: int,
    n_workers: int,
    assignment: Assignment | None = None,
    *,
    classes: Sequence[str] = ("a", "b", "c", "d", "e", "f", "g", "h"),
    n_prototypes: int = 4,
    density: float = 0.35,
    purity: float = 0.9,
    sensitivity: float = 0.75,
    false_alarm: float = 0.12,
    spread: float = 0.12,
    random_state: int | np.random.Generator | None = 0,
) -> SimulatedSets:
    """Simulate workers who tick the classes of a task.

    Truth, workers, graph and ticks have random streams of their own. A task has one of the
    prototypes. Classes of the prototype are in its set with probability ``purity``, others with
    half of the rest. Workers have rates of their own, which differ a little between classes.

    Parameters
    ----------
    n_tasks, n_workers : int
    assignment : Assignment, optional
        The workers of each task; by default five per task, or all if there are fewer.
    classes : sequence of str
    n_prototypes : int
        Number of prototypes; with 1 and a purity of 1 all tasks have the same set.
    density : float
        Probability that a class belongs to a prototype; every prototype has one at least.
    purity : float
        Probability of a class of the prototype to be in a set.
    sensitivity, false_alarm : float
        Mean rates at which workers tick classes that are there, and that are not.
    spread : float
        Standard deviation of the rates between workers; between classes of a worker it is half.
    random_state : int, numpy.random.Generator or None, default 0
        Seed; None for a different crowd every time.

    Returns
    -------
    SimulatedSets

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> simulate.sets(100, 20, simulate.PerTask(4))
    SimulatedSets(CrowdSets(100 tasks, 20 workers, 8 classes, 400 annotations))
    """
    for name, number in (("n_tasks", n_tasks), ("n_workers", n_workers),
                         ("n_prototypes", n_prototypes)):  # fmt: skip
        check_integer(name, number, 1)
    rates = {"density": density, "purity": purity, "sensitivity": sensitivity,
             "false_alarm": false_alarm, "spread": spread}  # fmt: skip
    for name, rate in rates.items():
        check_number(name, float(rate), 0.0, 1.0)
    if isinstance(classes, str) or not classes or len(set(classes)) < len(classes):
        raise ParameterError(f"classes is {classes!r}; give a list of one or more different names.")
    names, K = np.array([str(name) for name in classes], dtype=object), len(classes)
    of_truth, of_workers, of_graph, of_ticks = as_generator(random_state).spawn(4)
    graph = given_or_usual(assignment, n_workers)
    check_room(_BYTES_PER_TICK * K * graph.expected_labels(n_tasks, n_workers), "The sets")
    prototypes = _prototypes(n_prototypes, K, density, purity, of_truth)
    prototype = of_truth.integers(0, n_prototypes, n_tasks)
    members = of_truth.random((n_tasks, K)) < prototypes[prototype]
    own = [_rates(mean, spread, (n_workers, K), of_workers) for mean in (sensitivity, false_alarm)]
    task, worker = drawn_pairs(graph, n_tasks, n_workers, of_graph)
    chance = np.where(members[task], own[0][worker], own[1][worker])
    ticked = of_ticks.random((len(task), K)) < chance
    data = CrowdSets(
        task=task, worker=worker, tasks=np.arange(n_tasks), workers=np.arange(n_workers),
        members=np.nonzero(ticked)[1].astype(np.int32), pointer=_pointer(ticked), classes=names,
    )  # fmt: skip
    truth = joined_sets(np.nonzero(members)[1], _pointer(members), names)
    return SimulatedSets(data, truth, members, prototypes, prototype, *own)


def _prototypes(
    n: int, n_classes: int, density: float, purity: float, rng: np.random.Generator
) -> Floats:
    """Return (n, n_classes) probabilities of classes; every prototype has one class at least."""
    belongs = rng.random((n, n_classes)) < density
    belongs[np.arange(n), rng.integers(0, n_classes, n)] = True
    return np.where(belongs, purity, (1 - purity) / 2)


def _rates(mean: float, spread: float, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    """Return rates of workers and classes around a mean."""
    worker = rng.normal(0, spread, (shape[0], 1))
    return np.clip(mean + worker + rng.normal(0, spread / 2, shape), 0.01, 0.99)


def _pointer(table: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.append(0, np.cumsum(table.sum(axis=1))).astype(np.int64)


def named_classes(
    n_classes: int = 0, classes: Sequence[str] | None = None
) -> tuple[dict[str, Any], Sequence[str]]:
    """Return the parameters of the simulator for these classes, none, and their names."""
    return {}, classes or [f"class{k}" for k in range(n_classes)]
