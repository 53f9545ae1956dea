"""What a method climbs, computed anew: whether it is the right likelihood, and never falls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.testing.foundation import Make, with_params

LIMIT = 1e-300  # where a method's own logarithm of zero ends


def log_likelihood(labels: CrowdLabels, class_prior: Floats, confusion: Floats) -> float:
    r"""Return :math:`\sum_i \log \sum_k \pi_k \prod_j \theta_{jk y_{ij}}^{w_{ij}}`, from scratch.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays(["t", "t"], ["a", "b"], ["x", "y"])
    >>> half = np.full((2, 2, 2), 0.5)
    >>> round(log_likelihood(labels, np.array([0.5, 0.5]), half), 4)  # log 1/4
    -1.3863
    """
    return float(np.sum(np.logaddexp.reduce(_joint(labels, class_prior, confusion), axis=1)))


def _joint(labels: CrowdLabels, class_prior: Floats, confusion: Floats) -> Floats:
    """(n_tasks with labels, n_classes) log probability of each task's class and labels."""
    weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
    logs = np.log(np.maximum(confusion[labels.worker, :, labels.label], LIMIT))  # (E, K)
    joint = np.zeros((labels.n_tasks, labels.n_classes))
    np.add.at(joint, labels.task, weight[:, None] * logs)
    joint += np.log(np.maximum(class_prior, LIMIT))
    return np.asarray(joint[labels.labels_per_task > 0])


def _of_model(fitted: Aggregator, labels: CrowdLabels) -> float:
    prior = getattr(fitted, "class_prior_", None)
    uniform = np.full(labels.n_classes, 1 / labels.n_classes)
    return log_likelihood(labels, uniform if prior is None else prior, fitted.confusion_)


def _with_weak_prior(fitted: Aggregator, labels: CrowdLabels) -> float:
    K = labels.n_classes
    alpha = np.where(np.eye(K, dtype=bool), 2.0, 2.0 / K)
    logs = np.log(np.maximum(fitted.confusion_, LIMIT))
    return _of_model(fitted, labels) + float(np.sum(alpha * logs))


def _of_hard_classes(fitted: Aggregator, labels: CrowdLabels) -> float:
    return float(np.sum(_joint(labels, fitted.class_prior_, fitted.confusion_).max(axis=1)))


# Method, its parameters, and what its objective is.
OBJECTIVES: dict[str, tuple[str, dict[str, Any], Callable[[Aggregator, CrowdLabels], float]]] = {
    "DawidSkene, maximum likelihood": ("dawid-skene", {"prior": None}, _of_model),
    "DawidSkene, weak prior": ("dawid-skene", {"prior": "weak"}, _with_weak_prior),
    "OneCoin, maximum likelihood": ("one-coin", {"prior": None}, _of_model),
    "ZenCrowd": ("zen-crowd", {"prior": None}, _of_model),
    "ConfusionVector, maximum likelihood": ("confusion-vector", {"prior": None}, _of_model),
    "MACE, maximum likelihood": (
        "mace", {"method": "em", "prior": None, "habit_prior": 0.0}, _of_model,
    ),
    "FastDawidSkene, hard classes": ("fast-dawid-skene", {"prior": 0.0}, _of_hard_classes),
}  # fmt: skip


def objective_gap(name: str, labels: CrowdLabels) -> float:
    """Return how far a method's last objective is from its definition, per unit of its size."""
    method, params, definition = OBJECTIVES[name]
    fitted = get_method(method)(max_iter=500, tol=1e-12, n_init=1, **params).fit(labels)
    expected = definition(fitted, labels)
    return float(abs(fitted.history_[-1] - expected)) / max(1.0, abs(expected))


def monotone_methods() -> list[str]:
    """Return the methods that promise that their objective never falls."""
    return [name for name in method_names() if get_method(name)().tags().monotone]


def random_labels(seed: int, n_classes: int = 3) -> CrowdLabels:
    """Return a small crowd at random: sparse or dense, informed or pure noise, weighted or not."""
    rng = np.random.default_rng(seed)
    n, j = int(rng.integers(2, 40)), int(rng.integers(2, 9))
    truth = rng.integers(0, n_classes, n)
    present = rng.random((n, j)) < rng.uniform(0.2, 1.0)
    present[0, 0] = True
    task, worker = np.nonzero(present)
    skill = rng.uniform(0, 1, j) if seed % 2 else rng.uniform(0.5, 1, j)
    right = rng.random(len(task)) < skill[worker]
    label = np.where(right, truth[task], rng.integers(0, n_classes, len(task)))
    weight = rng.uniform(0.1, 3, len(task)) if seed % 3 == 0 else None
    return CrowdLabels.from_arrays(
        task, worker, label, weight=weight, tasks=range(n), workers=range(j),
        classes=range(n_classes),
    )  # fmt: skip


def largest_fall(make: Make, seed: int) -> float:
    """Return the largest fall of the objective in one random run, per unit of its size.

    The run has a random start or its own, plain or accelerated iterations, and gold or none.
    """
    rng = np.random.default_rng(seed)
    labels = random_labels(seed, 2 if make().tags().binary else 3)
    method = with_params(
        make, max_iter=40, tol=0.0, n_init=1, accelerate=bool(rng.random() < 0.5),
        random_state=seed,
    )  # fmt: skip
    options: dict[str, Any] = {}
    if rng.random() < 0.3:
        options["init"] = rng.dirichlet(np.ones(labels.n_classes), labels.n_tasks)
    if rng.random() < 0.3:
        options["gold"] = {labels.tasks[0]: labels.classes[0]}
    return fall_of(np.asarray(method.fit(labels, **options).history_))


def fall_of(history: NDArray[np.float64]) -> float:
    """Return the largest fall in a history, per unit of its size; infinite if it is no history."""
    if len(history) == 0 or not np.isfinite(history).all():
        return float("inf")
    fall = float(np.max(history[:-1] - history[1:], initial=0.0))
    return fall / max(1.0, float(np.abs(history).max()))
