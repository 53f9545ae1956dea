"""Crowds that mark objects in images: workers who draw too wide or too tight, shift or miss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.graphs import Assignment, drawn_pairs, given_or_usual
from wisecrowd.core.memory_check import check_room
from wisecrowd.core.parameter_checks import as_generator, check_integer, check_number
from wisecrowd.core.types import Floats
from wisecrowd.kinds.masks.container import HEIGHT, WIDTH, CrowdMasks
from wisecrowd.kinds.masks.run_lengths import counts_of, rle_text

WAVES = 4  # waves of the outline of a blob
WORKER_HABITS = ("offset", "shift", "miss")
Blob = tuple[Floats, Floats]  # centre and mean radius; waves of the outline


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedMasks:
    """Masks with everything that is known about how they came about.

    Attributes
    ----------
    data : CrowdMasks
        The annotations; task and worker ids are 0, 1, 2, ..., also those without labels.
    truth : (n_tasks,) str
        True mask of each task, as COCO's run-length JSON.
    habits : (n_workers, 3)
        Pixels by which a worker draws too wide (tight below 0), standard deviation of the shifts of
        objects in pixels, and probability to miss an object.
    """

    data: CrowdMasks
    truth: NDArray[np.object_]
    habits: Floats

    def __repr__(self) -> str:
        return f"SimulatedMasks({self.data!r})"


def masks(
    n_tasks: int,
    n_workers: int,
    assignment: Assignment | None = None,
    *,
    height: int = 64,
    width: int = 64,
    n_objects: int = 2,
    radius: float = 0.12,
    offset: float = 0.15,
    shift: float = 0.1,
    wobble: float = 0.08,
    miss: float = 0.1,
    random_state: int | np.random.Generator | None = 0,
) -> SimulatedMasks:
    """Simulate workers who mark round objects with wavy outlines.

    Truth, workers, graph and mistakes have random streams of their own. Every worker has a habit:
    an offset of the outline (too wide or too tight), and rates of shifts and misses.

    Parameters
    ----------
    n_tasks, n_workers : int
    assignment : Assignment, optional
        The workers of each task; by default five per task, or all if there are fewer.
    height, width : int
        Size of the images in pixels, at least 4.
    n_objects : int
        Number of objects in each image.
    radius : float
        Mean radius of objects, relative to the smaller side of the image.
    offset : float
        Standard deviation of the workers' offsets, relative to the mean radius.
    shift, wobble : float
        Mean standard deviation of shifts, and size of the waves that are drawn wrong, relative to
        the mean radius.
    miss : float
        Mean probability of missing an object.
    random_state : int, numpy.random.Generator or None, default 0
        Seed; None for a different crowd every time.

    Returns
    -------
    SimulatedMasks

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> simulate.masks(10, 6, simulate.PerTask(3))
    SimulatedMasks(CrowdMasks(10 tasks, 6 workers, 30 annotations))
    """
    for name, count in {"n_tasks": n_tasks, "n_workers": n_workers, "n_objects": n_objects}.items():
        check_integer(name, count, 1)
    for name, side in {"height": height, "width": width}.items():
        check_integer(name, side, 4, 30_000)
    check_number("radius", radius, 0.001, 1.0)
    check_number("miss", miss, 0.0, 1.0)
    for name, size in {"offset": offset, "shift": shift, "wobble": wobble}.items():
        check_number(name, size, 0.0, 10.0)
    of_truth, of_workers, of_graph, of_mistakes = as_generator(random_state).spawn(4)
    graph = given_or_usual(assignment, n_workers)
    check_room(40.0 * width * n_objects * graph.expected_labels(n_tasks, n_workers), "The runs")
    check_room(20.0 * height * width, "One image")
    size = radius * min(height, width)
    images = [_blobs(n_objects, size, height, width, of_truth) for _ in range(n_tasks)]
    habits = np.column_stack([
        size * offset * of_workers.normal(size=n_workers),
        size * shift * of_workers.gamma(4.0, 0.25, n_workers),
        np.full(n_workers, miss) if miss in (0, 1) else of_workers.beta(4 * miss, 4 - 4 * miss,
                                                                        n_workers),
    ])  # fmt: skip
    task, worker = drawn_pairs(graph, n_tasks, n_workers, of_graph)
    drawn = [
        counts_of(_drawn(images[i], habits[j], wobble, height, width, of_mistakes))
        for i, j in zip(task.tolist(), worker.tolist(), strict=True)
    ]
    data = CrowdMasks(
        task=task, worker=worker, tasks=np.arange(n_tasks), workers=np.arange(n_workers),
        mask=np.concatenate(drawn).astype(np.int32),
        pointer=np.cumsum([0, *map(len, drawn)]).astype(np.int64),
        task_columns={HEIGHT: np.full(n_tasks, height), WIDTH: np.full(n_tasks, width)},
    )  # fmt: skip
    truth = np.empty(n_tasks, dtype=object)
    for i, blobs in enumerate(images):
        truth[i] = rle_text(counts_of(_painted(blobs, height, width)), height, width)
    return SimulatedMasks(data, truth, habits)


def _blobs(n: int, size: float, height: int, width: int, rng: np.random.Generator) -> list[Blob]:
    """Return the objects of an image: centre, radius, and waves as (cosine, sine)."""
    found = []
    for _ in range(n):
        centre = rng.uniform([0.15 * height, 0.15 * width], [0.85 * height, 0.85 * width])
        waves = rng.normal(size=(WAVES, 2)) * 0.15 / np.arange(1, WAVES + 1)[:, None]
        found.append((np.append(centre, size * rng.uniform(0.6, 1.4)), waves))
    return found


def _drawn(
    blobs: list[Blob], habit: Floats, wobble: float, height: int, width: int,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:  # fmt: skip
    """Return what a worker marks: objects that are not missed, each with a mistake of its own."""
    offset, shift, miss = habit.tolist()
    found = []
    for place, waves in blobs:
        missed, moved = rng.random() < miss, shift * rng.normal(size=2)
        wrong = wobble * rng.normal(size=waves.shape) / np.arange(1, WAVES + 1)[:, None]
        if not missed:
            found.append((place + np.append(moved, offset), waves + wrong))
    return _painted(found, height, width)


def _painted(blobs: list[Blob], height: int, width: int) -> NDArray[np.bool_]:
    """Return the (height, width) mask of some objects."""
    mask = np.zeros((height, width), dtype=bool)
    order = np.arange(1, WAVES + 1)
    for (y, x, radius), waves in blobs:
        reach = abs(radius) * (1 + np.abs(waves).sum()) + 1
        rows = np.arange(max(int(y - reach), 0), min(int(y + reach) + 2, height))
        columns = np.arange(max(int(x - reach), 0), min(int(x + reach) + 2, width))
        if radius <= 0 or not len(rows) or not len(columns):
            continue
        down, right = (rows - y)[:, None], (columns - x)[None, :]
        angle = np.arctan2(down, right)[..., None] * order
        outline = radius * (1 + np.cos(angle) @ waves[:, 0] + np.sin(angle) @ waves[:, 1])
        mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] |= (
            np.hypot(down, right) < outline
        )
    return mask
