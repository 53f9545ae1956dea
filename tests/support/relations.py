"""Metamorphic relations: changes of the data that say nothing new, and what they may change.

Every relation makes a twin of a crowd and tells how the twin's results are laid out, so that both
fits can be compared task by task, worker by worker and class by class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.testing.foundation import Make, class_names, dense, short_run, tied

Columns = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Twin:
    """A crowd that says the same as another.

    Attributes
    ----------
    labels : CrowdLabels
    tasks, workers, classes : array of int, optional
        Where the first crowd's tasks, workers and classes are in this one; None: where they were.
    base : CrowdLabels, optional
        What to compare with, where it is not the first crowd.
    """

    labels: CrowdLabels
    tasks: NDArray[Any] | None = None
    workers: NDArray[Any] | None = None
    classes: NDArray[Any] | None = None
    base: CrowdLabels | None = None


@dataclass(frozen=True, kw_only=True)
class Relation:
    """A change that says nothing new.

    Attributes
    ----------
    name : str
    twin : function of (labels, rng)
    same_codes : bool
        Whether all codes stay, so that the same random numbers are drawn for the same things.
    same_bits : bool
        Whether the results must be the same to the last bit, not only to rounding.
    applies : function of Tags
        Whether a method with these tags promises it.
    """

    name: str
    twin: Callable[[CrowdLabels, np.random.Generator], Twin]
    same_codes: bool = False
    same_bits: bool = False
    applies: Callable[[Any], bool] = field(default=lambda tags: True)


@dataclass(frozen=True)
class Difference:
    """How far two fits are apart.

    Attributes
    ----------
    labels : int
        Tasks with other labels, outside exact ties.
    probas : float
        The largest difference of two probabilities.
    bits : bool
        Whether posteriors and worker accuracies are the same to the last bit.
    """

    labels: int
    probas: float
    bits: bool


# --------------------------------------------------------------------------------------- the twins


def _columns(labels: CrowdLabels) -> Columns:
    return labels.tasks[labels.task], labels.workers[labels.worker], labels.classes[labels.label]


def _declared(labels: CrowdLabels) -> dict[str, Any]:
    return {"tasks": labels.tasks.tolist(), "workers": labels.workers.tolist(),
            "classes": labels.classes.tolist()}  # fmt: skip


def _shuffled(labels: CrowdLabels, rng: np.random.Generator) -> Twin:
    order = rng.permutation(labels.n_annotations)
    task, worker, label = (column[order] for column in _columns(labels))
    weight = None if labels.weight is None else labels.weight[order]
    return Twin(
        labels=CrowdLabels.from_arrays(
            task, worker, label, weight=weight, duplicates="keep", **_declared(labels)
        )
    )


def _renamed(role: str) -> Callable[[CrowdLabels, np.random.Generator], Twin]:
    def twin(labels: CrowdLabels, rng: np.random.Generator) -> Twin:
        codes = {"tasks": labels.task, "workers": labels.worker, "classes": labels.label}
        ids: dict[str, Any] = {name: np.arange(len(getattr(labels, name))) for name in codes}
        moved = rng.permutation(len(ids[role]))
        columns = [
            (moved[values] if name == role else values).astype(np.int64)
            for name, values in codes.items()
        ]
        renamed = CrowdLabels.from_arrays(*columns, weight=labels.weight, duplicates="keep", **ids)
        places: Mapping[str, Any] = {role: moved}
        return Twin(labels=renamed, **places)

    return twin


def _encoded(labels: CrowdLabels, rng: np.random.Generator) -> Twin:
    """Turn ids into text of the same order."""
    names = {
        "tasks": [f"t{i:06d}" for i in range(labels.n_tasks)],
        "workers": [f"w{j:06d}" for j in range(labels.n_workers)],
        "classes": class_names(labels.n_classes),
    }
    task, worker, label = (np.array(names[role], dtype=object) for role in names)
    return Twin(
        labels=CrowdLabels.from_arrays(
            task[labels.task], worker[labels.worker], label[labels.label],
            weight=labels.weight, duplicates="keep", **names,
        )
    )  # fmt: skip


def _with_copy(labels: CrowdLabels, rng: np.random.Generator) -> Twin:
    """Append the same crowd under other names; the copy is compared with the original beside it."""
    double = CrowdLabels.from_arrays(
        np.concatenate([labels.task, labels.task + labels.n_tasks]).astype(np.int64),
        np.concatenate([labels.worker, labels.worker + labels.n_workers]).astype(np.int64),
        np.concatenate([labels.label, labels.label]).astype(np.int64),
        weight=None if labels.weight is None else np.tile(labels.weight, 2),
        duplicates="keep",
        tasks=np.arange(2 * labels.n_tasks),
        workers=np.arange(2 * labels.n_workers),
        classes=np.arange(labels.n_classes),
    )
    return Twin(
        labels=double,
        base=double,
        tasks=labels.n_tasks + np.arange(labels.n_tasks),
        workers=labels.n_workers + np.arange(labels.n_workers),
    )


def _repeated(labels: CrowdLabels, rng: np.random.Generator) -> Twin:
    """Give whole weights on one side, and so many equal annotations on the other."""
    times = rng.integers(1, 4, labels.n_annotations)
    columns = _columns(labels)
    declared = _declared(labels)
    weighted = CrowdLabels.from_arrays(
        *columns, weight=times.astype(np.float64), duplicates="keep", **declared
    )
    repeated = CrowdLabels.from_arrays(
        *(np.repeat(column, times) for column in columns), duplicates="keep", **declared
    )
    return Twin(labels=repeated, base=weighted)


RELATIONS: tuple[Relation, ...] = (
    Relation(name="row order", twin=_shuffled, same_codes=True, same_bits=True),
    Relation(name="encoding of ids", twin=_encoded, same_codes=True, same_bits=True),
    Relation(name="renaming of tasks", twin=_renamed("tasks")),
    Relation(name="renaming of workers", twin=_renamed("workers")),
    Relation(name="renaming of classes", twin=_renamed("classes")),
    Relation(name="a disjoint copy", twin=_with_copy),
    Relation(
        name="whole weights as repetition", twin=_repeated, same_codes=True,
        applies=lambda tags: tags.exact_replication,
    ),
)  # fmt: skip


# --------------------------------------------------------------------------------------- comparing


def compare(
    make: Make, relation: Relation, labels: CrowdLabels, rng: np.random.Generator
) -> Difference | None:
    """Fit a method to both sides of a relation, for a fixed number of iterations.

    None where the method promises nothing: it draws random numbers per code and codes change, or
    it does not count a whole weight as repetition.
    """
    tags = make().tags()
    if (tags.stochastic and not relation.same_codes) or not relation.applies(tags):
        return None
    twin = relation.twin(labels, rng)
    first = short_run(make).fit(labels if twin.base is None else twin.base)
    second = short_run(make).fit(twin.labels)
    return _difference(first, second, twin, labels)


def _difference(
    first: Aggregator, second: Aggregator, twin: Twin, labels: CrowdLabels
) -> Difference:
    n, j = labels.n_tasks, labels.n_workers
    mine, other = dense(first.probas_)[:n], dense(second.probas_)
    other = other[:n] if twin.tasks is None else other[twin.tasks]
    other = other if twin.classes is None else other[:, twin.classes]
    accuracy = second.worker_accuracy_
    accuracy = accuracy[:j] if twin.workers is None else accuracy[twin.workers]
    moved = max(np.abs(mine - other).max(), np.abs(first.worker_accuracy_[:j] - accuracy).max())
    chosen = _codes(second)[:n] if twin.tasks is None else _codes(second)[twin.tasks]
    expected = _codes(first)[:n]
    expected = expected if twin.classes is None else twin.classes[expected]
    differs = (chosen != expected) & ~tied(mine)
    return Difference(int(differs.sum()), float(moved), bool(moved == 0))


def _codes(fitted: Aggregator) -> NDArray[np.int64]:
    position = {value: code for code, value in enumerate(fitted.classes_.tolist())}
    return np.array([position[value] for value in fitted.labels_.tolist()], dtype=np.int64)
