"""Reading the arguments of the simulator: objects, their names, or plain numbers."""

from __future__ import annotations

import math

import numpy.typing as npt

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameters import check_integer
from wisecrowd.simulate import presets
from wisecrowd.simulate.base import Crowd, Population
from wisecrowd.simulate.difficulty import Difficulty, GivenDifficulty
from wisecrowd.simulate.graphs import Assignment


def as_assignment(assignment: Assignment | str | None) -> Assignment | None:
    """Read a graph, or its name."""
    if isinstance(assignment, str):
        return presets.assignment(assignment)
    if assignment is not None and not isinstance(assignment, Assignment):
        raise ParameterError(
            f"`assignment` must be an assignment graph or its name, but is {assignment!r}."
        )
    return assignment


def as_difficulty(difficulty: Difficulty | npt.ArrayLike | str | None) -> Difficulty | None:
    """Read a difficulty, its name, or its values."""
    if difficulty is None or isinstance(difficulty, Difficulty):
        return difficulty
    if isinstance(difficulty, str):
        return presets.difficulty(difficulty)
    return GivenDifficulty(difficulty)


def as_crowd(
    workers: Population | Crowd | str, n_workers: int | None, graph: Assignment | None, n_tasks: int
) -> Crowd:
    """Read a crowd or its name; a population needs its number of workers from somewhere."""
    if isinstance(workers, str):
        workers = presets.population(workers)
    if n_workers is not None:
        check_integer("n_workers", n_workers, 1, math.inf)
    if isinstance(workers, Crowd):
        if n_workers not in (None, workers.n_workers):
            raise ParameterError(
                f"`n_workers` is {n_workers}, but `workers` has {workers.n_workers}; leave one out."
            )
        return workers
    if not isinstance(workers, Population):
        raise ParameterError(
            f"`workers` must be a population, a crowd or its name, but is {workers!r}."
        )
    if n_workers is None and graph is not None:
        n_workers = graph.implied_workers(n_tasks)
    if n_workers is None:
        raise ParameterError(
            f"How many workers? Give `n_workers`, or a crowd such as 30 * {workers!r}."
        )
    return Crowd([(workers, n_workers)])
