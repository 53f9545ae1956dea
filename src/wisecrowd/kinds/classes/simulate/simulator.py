"""From workers, a graph and a truth to a crowd's labels."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.graphs import Assignment, PerTask
from wisecrowd.core.memory_check import check_room
from wisecrowd.core.parameter_checks import as_generator, check_integer
from wisecrowd.core.types import Codes, Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.label_law import ConfusionLaw, LabelSampler
from wisecrowd.kinds.classes.simulate.difficulty import Difficulty, GivenDifficulty
from wisecrowd.kinds.classes.simulate.worker_population import (
    Crowd,
    DependentPopulation,
    Draft,
    Population,
)
from wisecrowd.simulate import presets

_BYTES_PER_TASK = 20.0  # a random number, the class drawn, its code


class Truth(NamedTuple):
    """True classes of the tasks."""

    codes: Codes
    classes: npt.NDArray[Any]
    prior: Floats


def draw_truth(
    n_tasks: int | None,
    truth: npt.ArrayLike | None,
    classes: npt.ArrayLike | None,
    n_classes: int | None,
    class_prior: npt.ArrayLike | None,
    rng: np.random.Generator,
) -> Truth:
    """Draw the classes of all tasks, or encode those given.

    Examples
    --------
    >>> import numpy as np
    >>> made = draw_truth(None, ["b", "a", "b"], None, None, None, np.random.default_rng(0))
    >>> made.codes.tolist(), made.classes.tolist()
    ([1, 0, 1], ['a', 'b'])
    """
    if n_classes is not None:
        check_integer("n_classes", n_classes, 1)
    if truth is not None:
        if class_prior is not None:
            raise ParameterError("Give `truth` or `class_prior`: a given truth is not drawn.")
        return _encode(truth, n_tasks, classes, n_classes)
    check_integer("n_tasks", n_tasks, 1, math.inf)
    size = int(cast(int, n_tasks))
    ids = None if classes is None else _as_classes(classes)
    prior = None if class_prior is None else _as_prior(class_prior)
    sizes = {
        "n_classes": n_classes,
        "classes": None if ids is None else ids.size,
        "class_prior": None if prior is None else prior.size,
    }
    stated = {name: number for name, number in sizes.items() if number is not None}
    if len(set(stated.values())) > 1:
        said = ", ".join(f"`{name}` says {number}" for name, number in stated.items())
        raise ParameterError(f"How many classes? {said}.")
    k = next(iter(stated.values()), 2)
    check_room(8.0 * k**2, f"The confusion matrix of one worker and {k} classes")
    check_room(_BYTES_PER_TASK * size, f"The true classes of {size} tasks")
    if prior is None:
        prior = np.full(k, 1.0 / k)
    codes = rng.choice(k, size=size, p=prior).astype(np.int32)
    return Truth(codes, np.arange(k) if ids is None else ids, prior)


def _encode(
    truth: npt.ArrayLike, n_tasks: int | None, classes: npt.ArrayLike | None, n_classes: int | None
) -> Truth:
    values = np.asarray(truth)
    if values.ndim != 1 or values.size == 0:
        raise DataError(
            f"`truth` must be one class per task in one dimension, but its shape is {values.shape}."
        )
    if n_tasks is not None and n_tasks != values.size:
        raise ParameterError(f"`n_tasks` is {n_tasks}, but `truth` has {values.size} tasks.")
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise DataError(f"`truth` is missing for task {int(np.argmax(np.isnan(values)))}.")
    if classes is not None:
        ids = _as_classes(classes)
    elif n_classes is not None and values.dtype.kind in "iu":
        ids = np.arange(n_classes)
    else:
        ids = _distinct(values)
    if n_classes not in (None, ids.size):
        raise ParameterError(
            f"`n_classes` is {n_classes}, but there are {ids.size} classes; "
            "name them all with `classes`."
        )
    order = np.argsort(ids, kind="stable")
    try:
        place = np.minimum(np.searchsorted(ids[order], values), ids.size - 1)
    except TypeError as error:
        raise DataError("`truth` and `classes` hold ids of different types.") from error
    codes = order[place].astype(np.int32)
    unknown = np.asarray(ids[codes] != values)
    if unknown.any():
        first = int(np.argmax(unknown))
        raise DataError(f"`truth` of task {first} is {values[first]!r}, which is not a class.")
    prior = np.bincount(codes, minlength=ids.size) / codes.size
    return Truth(codes, ids, prior)


def _distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    try:
        return np.unique(values)
    except TypeError as error:
        raise DataError("`truth` mixes class ids that cannot be sorted.") from error


def _as_classes(classes: npt.ArrayLike) -> npt.NDArray[Any]:
    ids = np.array(classes)
    if ids.ndim != 1 or ids.size == 0 or _distinct(ids).size != ids.size:
        raise ParameterError("`classes` must be distinct class ids, at least one.")
    return ids


def _as_prior(class_prior: npt.ArrayLike) -> Floats:
    prior = np.array(class_prior, dtype=np.float64)
    if prior.ndim != 1 or prior.size == 0 or not (prior >= 0).all():
        raise ParameterError("`class_prior` must be one non-negative probability per class.")
    if not abs(prior.sum() - 1.0) <= 1e-6:
        raise ParameterError(f"`class_prior` must sum to 1, but sums to {prior.sum():.6g}.")
    normalised: Floats = prior / prior.sum()
    return normalised


# Confusion matrices of more than this are a mistake in the arguments, not a plan.
_MAX_CONFUSION_BYTES = 8 << 30
_BYTES_PER_LABEL = 40  # three codes, a random number and what it is looked up in


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedCrowd:
    """Labels with everything that is known about how they came about.

    Attributes
    ----------
    labels : CrowdLabels
        The annotations; task and worker ids are 0, 1, 2, ..., also those without labels.
    truth : ndarray of shape (n_tasks,)
        True class ids.
    truth_codes : ndarray of int32, shape (n_tasks,)
        Positions of the true classes in ``labels.classes``.
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        True ``p(label l | class k, worker j)`` on tasks of no particular difficulty. Copying
        and colluding are part of it: it is what the worker's labels look like on their own.
    kinds : ndarray of str, shape (n_workers,)
        Population of every worker.
    difficulty : ndarray of shape (n_tasks,) or None
        The tasks' numbers, in the meaning of the difficulty object.
    class_prior : ndarray of shape (n_classes,)
        What the truth was drawn from; its frequencies when the truth was given.
    settings : dict of str to str
        The arguments in words.
    """

    labels: CrowdLabels
    truth: npt.NDArray[Any]
    truth_codes: Codes
    confusion: Floats
    kinds: npt.NDArray[np.object_]
    difficulty: Floats | None
    class_prior: Floats
    settings: dict[str, str]

    @property
    def worker_accuracy(self) -> Floats:
        r"""(J,) true accuracy :math:`\sum_k \pi_k \theta_j[k, k]`."""
        accuracy: Floats = np.einsum("jkk,k->j", self.confusion, self.class_prior)
        return accuracy

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write answers.csv, truth.csv and SOURCE.md into a new folder; see `write`."""
        from wisecrowd.simulate.folder import write

        write(self, folder)

    def __repr__(self) -> str:
        return f"SimulatedCrowd({self.labels!r})"


def crowd(
    n_tasks: int | None,
    workers: Population | Crowd | str,
    assignment: Assignment | str | None = None,
    *,
    n_workers: int | None = None,
    n_classes: int | None = None,
    classes: npt.ArrayLike | None = None,
    class_prior: npt.ArrayLike | None = None,
    difficulty: Difficulty | npt.ArrayLike | str | None = None,
    truth: npt.ArrayLike | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> SimulatedCrowd:
    r"""Simulate a crowd: classes, workers, who labels what, and the labels.

    .. math:: z_i \sim \pi, \qquad \theta_j \sim \text{workers}, \qquad
              y_{ij} \sim \theta_j[z_i, \cdot] \;\text{for the pairs } (i, j) \text{ of the graph}

    Truth, workers, graph, difficulty and labels have random streams of their own, so that the
    same seed gives the same truth to another population. Time and memory are proportional to
    the annotations (plus J K^2 for the confusion matrices).

    Parameters
    ----------
    n_tasks : int or None
        Number of tasks; None when `truth` is given.
    workers : Population, Crowd or str
        A crowd such as ``30 * OneCoinWorkers() + 5 * Spammers()``, a population, or a text for
        `population`.
    assignment : Assignment or str, optional
        Who labels what, or a text for `assignment`. By default five workers per task, or
        everybody when there are fewer. Populations that label everything do so in addition.
    n_workers : int, optional
        How many workers a population has; a `Crowd` knows. Regular graphs imply it.
    n_classes : int, optional
        By default what `classes`, `truth` or `class_prior` say, else 2.
    classes : array-like of shape (n_classes,), optional
        Class ids; by default 0, 1, 2, ... or the distinct values of `truth`.
    class_prior : array-like of shape (n_classes,), optional
        Probabilities of the true classes; by default equal.
    difficulty : Difficulty, float, array-like of shape (n_tasks,) or str, optional
        How hard the tasks are; numbers are `GivenDifficulty`, a text is for `difficulty`.
    truth : array-like of shape (n_tasks,), optional
        True class ids, instead of drawing them.
    random_state : int, numpy.random.Generator or None, default 0
        Seed; None for a different crowd every time.

    Returns
    -------
    SimulatedCrowd

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> workers = 20 * simulate.OneCoinWorkers(4, 2) + 5 * simulate.Spammers()
    >>> made = simulate.crowd(100, workers, simulate.PerTask(3), class_prior=[0.5, 0.3, 0.2])
    >>> made
    SimulatedCrowd(CrowdLabels(100 tasks, 25 workers, 3 classes, 300 annotations))
    >>> made.kinds[-1], made.confusion.shape
    ('spammers', (25, 3, 3))
    """
    of_truth, of_workers, of_graph, of_difficulty, of_labels = as_generator(random_state).spawn(5)
    tasks = draw_truth(n_tasks, truth, classes, n_classes, class_prior, of_truth)
    graph = as_assignment(assignment)
    people = as_crowd(workers, n_workers, graph, tasks.codes.size)
    _check_memory(people.n_workers, tasks.classes.size)
    confusion = people.sample(tasks.classes.size, of_workers)
    task, worker = _assign(people, graph, tasks.codes.size, of_graph)
    hardness = as_difficulty(difficulty)
    values: Floats | None = None
    if hardness is None:
        shares = np.bincount(tasks.codes, minlength=tasks.classes.size) / tasks.codes.size
        law: LabelSampler = ConfusionLaw(shares, confusion)
    else:
        values = hardness.sample(tasks.codes.size, of_difficulty)
        law = hardness.law(confusion, values)
    alone = [not isinstance(population, DependentPopulation) for population, _ in people.groups]
    draft = Draft(
        task=task,
        worker=worker,
        label=law.draw(tasks.codes[task], worker, task, of_labels),
        truth=tasks.codes,
        confusion=confusion,
        draws_alone=people.per_worker(alone, bool),
        law=law,
    )
    for population, members in people.members():
        if isinstance(population, DependentPopulation):
            population.rewrite(draft, members, of_labels)
    # The codes are sorted, distinct and in range by construction: no second check of 10^7 rows.
    labels = CrowdLabels(
        task=task,
        worker=worker,
        label=draft.label,
        tasks=np.arange(tasks.codes.size),
        workers=np.arange(people.n_workers),
        classes=tasks.classes,
    )
    return SimulatedCrowd(
        labels=labels,
        truth=tasks.classes[tasks.codes],
        truth_codes=tasks.codes,
        confusion=draft.confusion,
        kinds=people.kinds,
        difficulty=values,
        class_prior=tasks.prior,
        settings={
            "workers": " + ".join(f"{n} * {population!r}" for population, n in people.groups),
            "assignment": "five per task, or everybody" if graph is None else repr(graph),
            "truth": f"drawn from {tasks.prior.tolist()}" if truth is None else "given",
            "difficulty": repr(hardness),
            "seed": (
                "a generator in an unknown state"
                if isinstance(random_state, np.random.Generator)
                else repr(random_state)
            ),
        },
    )


def _check_memory(n_workers: int, n_classes: int) -> None:
    needed = 8 * n_workers * n_classes**2
    if needed > _MAX_CONFUSION_BYTES:
        raise ParameterError(
            f"The confusion matrices of {n_workers} workers and {n_classes} classes would need "
            f"{needed / 2**30:.0f} GiB; simulate fewer workers or classes."
        )


def _assign(
    people: Crowd, graph: Assignment | None, n_tasks: int, rng: np.random.Generator
) -> tuple[Codes, Codes]:
    """Draw the graph of the ordinary workers, and add all tasks of those who label everything."""
    everything = people.per_worker([one.labels_everything for one, _ in people.groups], bool)
    ordinary = np.flatnonzero(~everything).astype(np.int32)
    tireless = np.flatnonzero(everything).astype(np.int32)
    task, worker = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32)
    drawn = graph if graph is not None else PerTask(min(5, max(ordinary.size, 1)))
    expected = drawn.expected_labels(n_tasks, ordinary.size) if ordinary.size else 0.0
    expected += float(n_tasks) * tireless.size
    check_room(_BYTES_PER_LABEL * expected, f"About {expected:.3g} labels")
    if ordinary.size:
        task, worker = drawn.assign(n_tasks, ordinary.size, rng)
    if task.size + tireless.size == 0:
        raise ParameterError(f"{graph!r} drew no annotation at all; ask for more labels.")
    if tireless.size == 0:
        return task, worker
    every_task = np.arange(n_tasks, dtype=np.int32)
    task = np.concatenate([task, np.repeat(every_task, tireless.size)])
    worker = np.concatenate([ordinary[worker], np.tile(tireless, n_tasks)])
    order = np.argsort(task.astype(np.int64) * people.n_workers + worker)
    return task[order], worker[order]


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
