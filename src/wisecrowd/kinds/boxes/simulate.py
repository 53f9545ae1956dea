"""Crowds that draw boxes: workers who miss objects, invent some, and draw too tight or loose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.graphs import Assignment, drawn_pairs, given_or_usual
from wisecrowd.core.ids.packed_sort import ragged_places
from wisecrowd.core.memory_check import check_room
from wisecrowd.core.parameter_checks import as_generator, check_integer, check_number
from wisecrowd.core.types import Floats, Longs
from wisecrowd.kinds.boxes.container import IMAGE_HEIGHT, IMAGE_WIDTH, NO_CLASS, CrowdRegions
from wisecrowd.kinds.boxes.metrics import boxes_of, sides_of

_BYTES_PER_BOX = 120
_OUTWARD = np.array([-1.0, -1.0, 1.0, 1.0])
_SMALLEST = 0.2  # of a drawn box, as a part of the object


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedBoxes:
    """Boxes with everything that is known about how they came about.

    Attributes
    ----------
    data : CrowdRegions
        The annotations; task and worker ids are 0, 1, 2, ...
    truth : CrowdRegions
        The true boxes of every task, drawn by one expert.
    miss : (n_workers,)
        Probability that a worker misses an object.
    phantoms : (n_workers,)
        Mean number of phantoms per image.
    noise : (n_workers,)
        Standard deviation of a side, in widths or heights of the object.
    bias : (n_workers, 4)
        Mean distance of left, top, right and bottom, outwards, in the same units.
    """

    data: CrowdRegions
    truth: CrowdRegions
    miss: Floats
    phantoms: Floats
    noise: Floats
    bias: Floats

    def __repr__(self) -> str:
        return f"SimulatedBoxes({self.data!r})"


def boxes(
    n_tasks: int,
    n_workers: int,
    assignment: Assignment | None = None,
    *,
    mean_objects: float = 2.0,
    miss: float = 0.15,
    phantoms: float = 0.1,
    noise: float = 0.05,
    looseness: float = 0.0,
    bias: float = 0.03,
    hard: float = 0.0,
    classes: Sequence[str] = (),
    mistype: float = 0.1,
    size: tuple[float, float] = (640.0, 480.0),
    random_state: int | np.random.Generator | None = 0,
) -> SimulatedBoxes:
    """Simulate workers who draw boxes around the objects of images.

    Truth, workers, graph and drawing have random streams of their own. Rates of workers are spread
    around the given means.

    Parameters
    ----------
    n_tasks, n_workers : int
    assignment : Assignment, optional
        The workers of each task; by default five per task, or all if there are fewer.
    mean_objects : float
        Mean number of objects of an image (Poisson).
    miss : float
        Mean probability that a worker misses an object.
    phantoms : float
        Mean number of phantoms per image and worker.
    noise : float
        Mean standard deviation of a side, in widths or heights of the object.
    looseness, bias : float
        Mean distance of all sides outwards, negative for too tight, and the standard deviation of
        each worker's side around it, in the same units.
    hard : float
        Share of objects that everybody misses four times out of five.
    classes : sequence of str
        Classes of objects; none by default.
    mistype : float
        Probability of a wrong class.
    size : (width, height)
        Size of the images.
    random_state : int, numpy.random.Generator or None, default 0
        Seed; None for a different crowd every time.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> simulate.boxes(100, 20, simulate.PerTask(4))
    SimulatedBoxes(CrowdRegions(100 tasks, 20 workers, 1 classes, 400 annotations))
    """
    check_integer("n_tasks", n_tasks, 1)
    check_integer("n_workers", n_workers, 1)
    for name, value in (("miss", miss), ("hard", hard), ("mistype", mistype)):
        check_number(name, value, 0.0, 1.0)
    for name, value in (("mean_objects", mean_objects), ("phantoms", phantoms)):
        check_number(name, value, 0.0, 1000.0)
    check_number("noise", noise, 0.0, 1.0)
    check_number("bias", bias, 0.0, 1.0)
    check_number("looseness", looseness, -0.3, 1.0)
    if len(set(classes)) < len(classes):
        raise ParameterError(f"classes is {classes!r}; give different names.")
    of_truth, of_workers, of_graph, of_boxes = as_generator(random_state).spawn(4)
    graph = given_or_usual(assignment, n_workers)
    expected = (mean_objects + phantoms + 1) * graph.expected_labels(n_tasks, n_workers)
    check_room(_BYTES_PER_BOX * expected, "The boxes")
    extent = np.array(size, dtype=np.float64)
    names = np.array(list(classes) or [NO_CLASS], dtype=object)
    count = of_truth.poisson(mean_objects, n_tasks)
    true = _boxes(int(count.sum()), extent, of_truth)
    kind = of_truth.integers(0, len(names), len(true))
    is_hard = of_truth.random(len(true)) < hard
    rates = _workers(n_workers, (miss, phantoms, noise, looseness, bias), of_workers)
    task, worker = drawn_pairs(graph, n_tasks, n_workers, of_graph)
    pointer = np.append(0, np.cumsum(count))
    shown, _ = ragged_places(pointer, task)
    look = np.repeat(np.arange(len(task)), count[task])
    chance = np.where(is_hard[shown], np.maximum(0.8, rates[0][worker[look]]),
                      rates[0][worker[look]])  # fmt: skip
    seen = of_boxes.random(len(shown)) >= chance
    look, shown = look[seen], shown[seen]
    drawn = _drawn(true[shown], rates[2][worker[look]], rates[3][worker[look]], extent, of_boxes)
    label = kind[shown]
    wrong = of_boxes.random(len(label)) < mistype * (len(names) > 1)
    other = of_boxes.integers(1, max(len(names), 2), len(label))
    label = np.where(wrong, (label + other) % len(names), label)
    extra = of_boxes.poisson(rates[1][worker])
    look = np.append(look, np.repeat(np.arange(len(task)), extra))
    drawn = np.concatenate([drawn, _boxes(int(extra.sum()), extent, of_boxes)])
    label = np.append(label, of_boxes.integers(0, len(names), int(extra.sum())))
    data = _regions(task, worker, look, drawn, label, n_tasks, n_workers, names, extent)
    expert = _regions(
        np.arange(n_tasks, dtype=np.int32), np.zeros(n_tasks, dtype=np.int32),
        np.repeat(np.arange(n_tasks), count), true, kind, n_tasks, 1, names, extent,
    )  # fmt: skip
    return SimulatedBoxes(data, expert, *rates)


def _boxes(n: int, extent: Floats, rng: np.random.Generator) -> Floats:
    """Return boxes of 5% to 40% of the image, inside of it."""
    size = extent * rng.uniform(0.05, 0.4, (n, 2))
    return np.concatenate([rng.random((n, 2)) * (extent - size), size], axis=1)


def _workers(
    n: int, means: tuple[float, ...], rng: np.random.Generator
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return rates of misses, phantoms and noise, and bias of sides of each worker."""
    miss, phantoms, noise, looseness, bias = means
    inside = min(max(miss, 1e-6), 1 - 1e-6)
    misses = rng.beta(10 * inside, 10 * (1 - inside), n) if 0 < miss < 1 else np.full(n, miss)
    spread = rng.gamma(4.0, 0.25, (2, n))  # mean 1
    return misses, phantoms * spread[0], noise * spread[1], rng.normal(looseness, bias, (n, 4))


def _drawn(
    true: Floats, noise: Floats, bias: Floats, extent: Floats, rng: np.random.Generator
) -> Floats:
    """Return the boxes that workers draw of objects, cut to the image."""
    unit = np.concatenate([true[:, 2:], true[:, 2:]], axis=1)
    sides = sides_of(true) + unit * (
        bias * _OUTWARD + noise[:, None] * rng.standard_normal((len(true), 4))
    )
    limit = np.concatenate([extent, extent])
    sides = np.clip(sides, 0.0, limit)
    centre = true[:, :2] + true[:, 2:] / 2
    half = _SMALLEST * true[:, 2:] / 2  # large noise must not turn a box inside out
    sides[:, :2] = np.minimum(sides[:, :2], centre - half)
    sides[:, 2:] = np.maximum(sides[:, 2:], centre + half)
    return boxes_of(sides)


def _regions(
    task: NDArray[np.int32], worker: NDArray[np.int32], look: Longs, drawn: Floats, label: Longs,
    n_tasks: int, n_workers: int, names: NDArray[np.object_], extent: Floats,
) -> CrowdRegions:  # fmt: skip
    order = np.lexsort((label, *(drawn[:, k] for k in (3, 2, 1, 0)), look))
    pointer = np.append(0, np.cumsum(np.bincount(look, minlength=len(task))))
    return CrowdRegions(
        task=task, worker=worker, tasks=np.arange(n_tasks), workers=np.arange(n_workers),
        boxes=drawn[order], label=label[order].astype(np.int32), pointer=pointer, classes=names,
        task_columns={
            IMAGE_WIDTH: np.full(n_tasks, extent[0]), IMAGE_HEIGHT: np.full(n_tasks, extent[1]),
        },
    )  # fmt: skip


def named_classes(
    n_classes: int = 0, classes: Sequence[str] | None = None
) -> tuple[dict[str, Any], Sequence[str]]:
    """Return the parameters of the simulator for these classes, none, and their names."""
    return {}, classes or [f"class{k}" for k in range(n_classes)]
