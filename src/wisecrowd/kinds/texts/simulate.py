"""Crowds that write texts: workers who mistake, drop and insert words."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.graphs import Assignment, drawn_pairs, given_or_usual
from wisecrowd.core.ids.packed_sort import ragged_places
from wisecrowd.core.memory_check import check_room
from wisecrowd.core.parameter_checks import as_generator, check_integer, check_number
from wisecrowd.core.types import Floats
from wisecrowd.kinds.texts.container import CrowdTexts

_BYTES_PER_WORD = 120
WORD_MISTAKES = ("substitute", "drop", "insert")
_ONSETS, _VOWELS, _ENDS = "bdfgklmnprst", "aeiou", ("", "n", "r", "st", "l")


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedTexts:
    """Texts with everything that is known about how they came about.

    Attributes
    ----------
    data : CrowdTexts
        The annotations; task and worker ids are 0, 1, 2, ..., also those without labels.
    truth : (n_tasks,) str
        True text of each task.
    mistakes : (n_workers, 3)
        Probability that a worker takes a word for another, drops it, and inserts one after it.
    """

    data: CrowdTexts
    truth: NDArray[np.object_]
    mistakes: Floats

    def __repr__(self) -> str:
        return f"SimulatedTexts({self.data!r})"


def texts(
    n_tasks: int,
    n_workers: int,
    assignment: Assignment | None = None,
    *,
    n_words: int = 400,
    mean_length: float = 10.0,
    substitute: float = 0.12,
    drop: float = 0.05,
    insert: float = 0.03,
    shared: float = 0.3,
    random_state: int | np.random.Generator | None = 0,
) -> SimulatedTexts:
    """Simulate workers who transcribe texts.

    Truth, workers, graph and mistakes have random streams of their own. The rates of a worker's
    mistakes are beta-distributed around the given means. Frequencies of words follow Zipf's law.

    Parameters
    ----------
    n_tasks, n_workers : int
    assignment : Assignment, optional
        The workers of each task; by default five per task, or all if there are fewer.
    n_words : int
        Number of different words, up to 3600.
    mean_length : float
        Mean number of words of a text, at least 1.
    substitute, drop, insert : float
        Mean probabilities of the workers' mistakes, per word of the truth.
    shared : float
        Probability that a mistaken word becomes the one that it is usually mistaken for, so that
        several workers make the same mistake.
    random_state : int, numpy.random.Generator or None, default 0
        Seed; None for a different crowd every time.

    Returns
    -------
    SimulatedTexts

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> simulate.texts(100, 20, simulate.PerTask(4))
    SimulatedTexts(CrowdTexts(100 tasks, 20 workers, 400 annotations))
    """
    check_integer("n_tasks", n_tasks, 1)
    check_integer("n_workers", n_workers, 1)
    check_integer("n_words", n_words, 2, 60 * 60)
    check_number("mean_length", mean_length, 1.0)
    means = np.array([substitute, drop, insert], dtype=np.float64)
    for name, rate in {"shared": shared, **dict(zip(WORD_MISTAKES, means, strict=True))}.items():
        check_number(name, float(rate), 0.0, 1.0)
    if substitute + drop > 1:
        raise ParameterError(
            f"substitute + drop is {substitute + drop:g}; give at most 1 together."
        )
    of_truth, of_workers, of_graph, of_mistakes = as_generator(random_state).spawn(4)
    graph = given_or_usual(assignment, n_workers)
    n_labels = graph.expected_labels(n_tasks, n_workers)
    check_room(_BYTES_PER_WORD * mean_length * n_labels, "The words")
    length = 1 + of_truth.poisson(mean_length - 1, n_tasks)
    pointer = np.append(0, np.cumsum(length))
    frequency = 1 / np.arange(3, n_words + 3)
    truth = of_truth.choice(n_words, pointer[-1], p=frequency / frequency.sum())
    usual = (np.arange(n_words) + of_truth.integers(1, n_words, n_words)) % n_words
    mistakes = _rates(means, n_workers, of_workers)
    task, worker = drawn_pairs(graph, n_tasks, n_workers, of_graph)
    place, own = ragged_places(pointer, task)
    seen = truth[place]
    rates = np.repeat(mistakes[worker], length[task], axis=0)
    written, count = _mistaken(seen, rates, usual, shared, of_mistakes)
    ends = np.append(0, np.cumsum(count))[own]
    words = _words(n_words)
    data = CrowdTexts(
        task=task, worker=worker, tasks=np.arange(n_tasks), workers=np.arange(n_workers),
        text=_joined(words[written].tolist(), ends),
    )  # fmt: skip
    return SimulatedTexts(data, _joined(words[truth].tolist(), pointer), mistakes)


def _words(n_words: int) -> NDArray[np.object_]:
    """Return different words of one or two syllables."""
    first = [a + b for a in _ONSETS for b in _VOWELS]
    made = [one + two for two in ("", *first) for one in first]
    ends = [word + _ENDS[k % len(_ENDS)] for k, word in enumerate(made)]
    return np.array(ends[:n_words], dtype=object)


def _joined(words: list[str], ends: NDArray[np.int64]) -> NDArray[np.object_]:
    found = np.empty(len(ends) - 1, dtype=object)
    found[:] = [" ".join(words[a:b]) for a, b in pairwise(ends.tolist())]
    return found


def _rates(means: Floats, n_workers: int, rng: np.random.Generator) -> Floats:
    """Return each worker's rates of mistakes: a beta distribution that weighs as ten words."""
    inside = np.clip(means, 1e-6, 1 - 1e-6)
    drawn = rng.beta(10 * inside, 10 * (1 - inside), (n_workers, len(means)))
    return np.where((means > 0) & (means < 1), drawn, means)


def _mistaken(
    seen: NDArray[np.int64], rates: Floats, usual: NDArray[np.int64], shared: float,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:  # fmt: skip
    """Return the words that workers write, and how many they write for each word."""
    chance, n_words = rng.random((3, len(seen))), len(usual)
    other = (seen + rng.integers(1, n_words, len(seen))) % n_words
    other = np.where(chance[1] < shared, usual[seen], other)
    substituted = chance[0] < rates[:, 0]
    dropped = ~substituted & (chance[0] < rates[:, 0] + rates[:, 1])
    inserted = chance[2] < rates[:, 2]
    pairs = np.column_stack(
        [np.where(substituted, other, seen), rng.integers(0, n_words, len(seen))]
    )
    kept = np.column_stack([~dropped, inserted])
    return pairs[kept], kept.sum(axis=1)
