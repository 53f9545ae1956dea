"""Small crowds for the checks: skewed and asymmetric, because symmetry hides swapped axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.core.rankings import CrowdRankings
from wisecrowd.core.regions import CrowdRegions
from wisecrowd.core.sequences import CrowdSequences
from wisecrowd.core.sets import CrowdSets
from wisecrowd.core.texts import CrowdTexts
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
    boxes,
    crowd,
)
from wisecrowd.testing.foundation import Floats, Make

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


def class_names(n_classes: int) -> list[str]:
    """Return class names in alphabetical order."""
    return [f"class-{k:03d}" for k in range(n_classes)]


def small_labels(make: Make, random_state: int = 0) -> CrowdLabels:
    """Return 40 tasks with labels by 4 of 7 workers each, with text ids."""
    made = simulated(40, 7, n_classes_for(make), 4, random_state)
    return with_names(made.labels)


def small_grades(make: Make, random_state: int = 0) -> CrowdLabels:
    """Return 40 tasks with ordered labels by 4 of 7 workers each, with text ids."""
    rng = np.random.default_rng(random_state)
    task, worker = _who_labels_what(rng)
    level = rng.normal(0, 1, 40)
    seen = level[task] + 0.3 * rng.normal(size=7)[worker] + 0.5 * rng.normal(size=len(task))
    label = np.searchsorted([-0.6, 0.2, 1.1], seen)
    names = np.array(["1", "2", "3", "4"], dtype=object)
    return CrowdLabels.from_arrays(
        *_text_ids(task, worker), names[label], classes=names.tolist(), ordered=True
    )


def small_numbers(make: Make, random_state: int = 0) -> CrowdNumbers:
    """Return 40 tasks with numbers by 4 of 7 workers each, with text ids."""
    rng = np.random.default_rng(random_state)
    task, worker = _who_labels_what(rng)
    noise, bias = rng.uniform(0.2, 1.5, 7), rng.normal(0, 0.5, 7)
    value = rng.normal(10, 2, 40)[task] + bias[worker] + noise[worker] * rng.normal(size=len(task))
    return CrowdNumbers.from_arrays(*_text_ids(task, worker), value)


def small_votes(make: Make, random_state: int = 0) -> CrowdPairs:
    """Return 240 votes with ties on 9 items by 7 workers, with text ids."""
    rng = np.random.default_rng(random_state)
    score = rng.normal(0, 1, 9)
    left = rng.integers(0, 9, 240)
    right = (left + rng.integers(1, 9, 240)) % 9
    worker = rng.integers(0, 7, 240)
    gap = score[left] - score[right] + rng.logistic(size=240)
    gap = np.where(worker == 6, rng.logistic(size=240), gap)
    outcome = np.where(np.abs(gap) < 0.3, 2, np.where(gap > 0, 0, 1))
    items = np.array([f"item-{a:03d}" for a in range(9)], dtype=object)
    task, workers = _text_ids(np.arange(240) % 60, worker)
    timed = getattr(make(), "needs_timestamps", False)
    options = {"timestamp": rng.permutation(240).astype(np.float64)} if timed else {}
    return CrowdPairs.from_arrays(task, workers, items[left], items[right], outcome, **options)


def small_rankings(make: Make, random_state: int = 0) -> CrowdRankings:
    """Return 120 rankings of two to five of 8 items by 7 workers, with text ids."""
    rng = np.random.default_rng(random_state)
    score, texts = rng.normal(0, 1, 8), []
    for _ in range(120):
        chosen = rng.permutation(8)[: rng.integers(2, 6)]
        order = chosen[np.argsort(-(score[chosen] + rng.gumbel(size=len(chosen))))]
        texts.append(" > ".join(f"item-{a:03d}" for a in order.tolist()))
    task, workers = _text_ids(np.arange(120) % 40, rng.integers(0, 7, 120))
    return CrowdRankings.from_arrays(task, workers, texts)


def small_sequences(make: Make, random_state: int = 0) -> CrowdSequences:
    """Return 40 tagged sentences by 4 of 7 workers each, with text ids."""
    rng = np.random.default_rng(random_state)
    task, worker = _who_labels_what(rng)
    truth = [_sentence(rng) for _ in range(40)]
    skill = rng.uniform(0.6, 0.95, 7)
    pairs = zip(task.tolist(), worker.tolist(), strict=True)
    texts = [" ".join(_mistagged(rng, truth[i], skill[j])) for i, j in pairs]
    classes = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    return CrowdSequences.from_arrays(
        *_text_ids(task, worker), np.array(texts, dtype=object), classes=classes
    )


def small_sets(make: Make, random_state: int = 0) -> CrowdSets:
    """Return 40 tasks with sets of four classes by 4 of 7 workers each, with text ids."""
    rng = np.random.default_rng(random_state)
    task, worker = _who_labels_what(rng)
    prototypes = np.array([[0.9, 0.8, 0.1, 0.05], [0.1, 0.2, 0.7, 0.3]])
    truth = rng.random((40, 4)) < prototypes[(rng.random(40) < 0.4).astype(int)]
    rates = np.stack([rng.uniform(0.0, 0.3, (7, 4)), rng.uniform(0.6, 0.95, (7, 4))])
    chance = np.where(truth[task], rates[1][worker], rates[0][worker])
    names = np.array(class_names(4), dtype=object)
    texts = ["|".join(names[own]) for own in rng.random((160, 4)) < chance]
    return CrowdSets.from_arrays(
        *_text_ids(task, worker), np.array(texts, dtype=object), classes=names.tolist()
    )


def _sentence(rng: np.random.Generator) -> list[str]:
    """Return the tags of 3 to 12 tokens, with spans of skewed types."""
    tags: list[str] = []
    size = int(rng.integers(3, 13))
    while len(tags) < size:
        if rng.random() < 0.7:
            tags.append("O")
        else:
            kind = "PER" if rng.random() < 0.7 else "LOC"
            tags += [f"B-{kind}", *[f"I-{kind}"] * int(rng.integers(0, 3))]
    return tags[:size]


def _mistagged(rng: np.random.Generator, truth: list[str], skill: float) -> list[str]:
    """Return tags of a worker who misses spans, cuts them short and mistakes their type."""
    tags = list(truth)
    for t, tag in enumerate(truth):
        if rng.random() > skill:
            tags[t] = "O" if rng.random() < 0.6 else tag.replace("LOC", "PER")
    return tags


def small_texts(make: Make, random_state: int = 0) -> CrowdTexts:
    """Return 40 short texts by 4 of 7 workers each, with text ids."""
    rng = np.random.default_rng(random_state)
    task, worker = _who_labels_what(rng)
    known = [f"{a}{b}{c}" for a in "bdgkm" for b in "aeou" for c in ("", "n", "rt")]
    truth = [rng.choice(known, int(rng.integers(2, 8))).tolist() for _ in range(40)]
    skill = rng.uniform(0.6, 0.95, 7)
    pairs = zip(task.tolist(), worker.tolist(), strict=True)
    texts = [_miswritten(rng, truth[i], known, skill[j]) for i, j in pairs]
    return CrowdTexts.from_arrays(*_text_ids(task, worker), np.array(texts, dtype=object))


def _miswritten(rng: np.random.Generator, truth: list[str], known: list[str], skill: float) -> str:
    """Return a text of a worker who drops words, doubles them and takes them for others."""
    words: list[str] = []
    for word in truth:
        what = rng.random() if rng.random() > skill else 1.0
        words += [str(rng.choice(known))] if what < 0.6 else [] if what < 0.8 else [word]
        words += [word] if 0.8 <= what < 1.0 else []
    text = " ".join(words)
    return text.capitalize() + "." if rng.random() < 0.5 else text


def small_boxes(make: Make, random_state: int = 0) -> CrowdRegions:
    """Return 40 images with boxes of two classes by 4 of 7 workers each, with text ids."""
    made = boxes(
        40, 7, PerTask(4), miss=0.25, phantoms=0.3, classes=("car", "person"), mistype=0.25,
        random_state=random_state,
    )  # fmt: skip
    table = made.data.to_dict()
    sides = (table[name] for name in ("x", "y", "width", "height", "label"))
    return CrowdRegions.from_arrays(*_text_ids(table["task"], table["worker"]), *sides)


def _who_labels_what(rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    worker = np.concatenate([rng.choice(7, 4, replace=False) for _ in range(40)])
    return np.repeat(np.arange(40), 4), worker


def _text_ids(task: NDArray[Any], worker: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    tasks = np.array([f"task-{i:05d}" for i in task.tolist()], dtype=object)
    return tasks, np.array([f"worker-{j:04d}" for j in worker.tolist()], dtype=object)


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
