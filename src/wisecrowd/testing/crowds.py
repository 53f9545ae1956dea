"""Small crowds for the checks: skewed and asymmetric, because symmetry hides swapped axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.simulate import (
    ClassExperts,
    Dense,
    DependentGroup,
    FixedConfusion,
    GLADDifficulty,
    GLADWorkers,
    MACEWorkers,
    OneCoinWorkers,
    PerTask,
    Population,
    SimulatedCrowd,
    TwoCoinWorkers,
    crowd,
)
from wisecrowd.testing.foundation import Make, class_names

CLASS_PRIOR = {2: (0.7, 0.3), 3: (0.55, 0.3, 0.15)}


def n_classes_for(make: Make) -> int:
    """Return 2 for binary methods, else 3."""
    return 2 if make().tags().binary else 3


def asymmetric_confusions(n_workers: int, n_classes: int, random_state: int = 0) -> Floats:
    """Return (J, K, K) confusion matrices whose most common error is the next class."""
    rng = np.random.default_rng(random_state)
    right = np.clip(rng.uniform(0.55, 0.95, (n_workers, 1)) - 0.1 * np.arange(n_classes), 0.4, 1)
    if n_classes == 1:
        return np.ones((n_workers, 1, 1))
    wrong = np.full((n_workers, n_classes, n_classes), 0.2 / max(n_classes - 2, 1))
    k = np.arange(n_classes)
    wrong[:, k, (k + 1) % n_classes] = 0.8
    wrong[:, k, k] = 0
    wrong /= wrong.sum(axis=2, keepdims=True)
    return np.asarray(wrong * (1 - right)[:, :, None] + right[:, :, None] * np.eye(n_classes))


def simulated(
    n_tasks: int,
    n_workers: int,
    n_classes: int,
    labels_per_task: int | None = None,
    random_state: int = 0,
) -> SimulatedCrowd:
    """Return a crowd of asymmetric workers on skewed classes, with integer ids."""
    population = FixedConfusion(asymmetric_confusions(n_workers, n_classes, random_state))
    return crowd(
        n_tasks,
        n_workers * population,
        Dense() if labels_per_task is None else PerTask(labels_per_task),
        class_prior=CLASS_PRIOR.get(n_classes, np.full(n_classes, 1 / n_classes)),
        random_state=random_state,
    )


def with_names(labels: CrowdLabels) -> CrowdLabels:
    """Return the same labels with text ids, in the same order."""
    columns = named_columns(labels)
    return CrowdLabels.from_arrays(*columns, classes=class_names(labels.n_classes))


def named_columns(labels: CrowdLabels) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return task, worker and label columns as text that sorts like the codes."""
    tasks = np.array([f"task-{i:05d}" for i in range(labels.n_tasks)], dtype=object)
    workers = np.array([f"worker-{j:04d}" for j in range(labels.n_workers)], dtype=object)
    classes = np.array(class_names(labels.n_classes), dtype=object)
    return tasks[labels.task], workers[labels.worker], classes[labels.label]


def example(make: Make, seed: int = 0) -> Any:
    """Return a small crowd of the method's kind, with text ids."""
    return make()._kind().example_crowd(make, seed)


def columns_of(data: Annotations) -> tuple[NDArray[Any], ...]:
    """Return the columns that ``fit`` takes: task, worker and the payload."""
    table = data.to_dict()
    return tuple(table[name] for name in ("task", "worker", *data.roles()) if name in table)


def rebuilt(data: Annotations, columns: Sequence[NDArray[Any]], order: Any = slice(None)) -> Any:
    """Return columns in another order as ``fit`` takes them: with the times of the data, if any."""
    moved = tuple(column[order] for column in columns)
    if "timestamp" not in data.columns:
        return moved
    return type(data).from_arrays(*moved, timestamp=data.columns["timestamp"][order])


def small_labels(make: Make, random_state: int = 0) -> CrowdLabels:
    """Return 40 tasks with labels by 4 of 7 workers each, with text ids."""
    made = simulated(40, 7, n_classes_for(make), 4, random_state)
    return with_names(made.labels)


def own_crowd(name: str, random_state: int = 0) -> SimulatedCrowd | None:
    """Return a crowd simulated from the method's own model, or None if it is not available here.

    Parameters
    ----------
    name : str
        The method's command-line name.
    random_state : int
    """
    if name == "group-aware-dawid-skene":
        return crowd_of_groups(random_state)
    stories: dict[str, tuple[Population, tuple[float, ...], Any]] = {
        "dawid-skene": (
            FixedConfusion(asymmetric_confusions(12, 3, random_state)),
            CLASS_PRIOR[3],
            None,
        ),
        "fast-dawid-skene": (
            FixedConfusion(asymmetric_confusions(12, 3, random_state)),
            CLASS_PRIOR[3],
            None,
        ),
        "one-coin": (OneCoinWorkers(6, 3), CLASS_PRIOR[3], None),
        "zen-crowd": (OneCoinWorkers(6, 3), (1 / 3, 1 / 3, 1 / 3), None),
        "confusion-vector": (ClassExperts(n_known=1, p=0.95, q=0.6), CLASS_PRIOR[3], None),
        "mace": (MACEWorkers(4, 2), (1 / 3, 1 / 3, 1 / 3), None),
        "two-coin": (TwoCoinWorkers(), CLASS_PRIOR[2], None),
        "glad": (GLADWorkers(1.0, 0.8), (0.5, 0.5), GLADDifficulty(0.0, 0.5)),
    }
    if name not in stories:
        return None
    population, prior, difficulty = stories[name]
    return crowd(
        600,
        12 * population,
        Dense(),
        class_prior=prior,
        difficulty=difficulty,
        random_state=random_state,
    )


def crowd_of_groups(random_state: int = 0) -> SimulatedCrowd:
    """Return a crowd of six independent workers and two groups of three."""
    alone = 6 * FixedConfusion(asymmetric_confusions(6, 3, random_state))
    return crowd(
        1500,
        alone + 3 * DependentGroup() + 3 * DependentGroup(),
        Dense(),
        class_prior=CLASS_PRIOR[3],
        random_state=random_state,
    )
