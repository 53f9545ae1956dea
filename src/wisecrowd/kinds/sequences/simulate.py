"""Crowds that mark spans: workers who miss, cut, stretch, mistype or invent them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.graphs import Assignment, drawn_pairs, given_or_usual
from wisecrowd.core.memory_check import check_room
from wisecrowd.core.parameter_checks import as_generator, check_integer, check_number
from wisecrowd.core.types import Floats
from wisecrowd.kinds.sequences.container import LENGTH, CrowdSequences
from wisecrowd.kinds.sequences.tag_scheme import TagScheme

_BYTES_PER_TAG = 60
MISTAKES = ("miss", "cut", "stretch", "mistype", "invent")


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedSequences:
    """Tag sequences with everything that is known about how they came about.

    Attributes
    ----------
    data : CrowdSequences
        The annotations; task and worker ids are 0, 1, 2, ..., also those without labels.
    truth : (n_tasks,) str
        True tags of each task, with a space between them.
    mistakes : (n_workers, 5)
        Probability that a worker misses a span, cuts its last token, goes on for a token, takes it
        for another type, and invents one at a token outside.
    """

    data: CrowdSequences
    truth: NDArray[np.object_]
    mistakes: Floats

    def __repr__(self) -> str:
        return f"SimulatedSequences({self.data!r})"


def sequences(
    n_tasks: int,
    n_workers: int,
    assignment: Assignment | None = None,
    *,
    types: Sequence[str] = ("LOC", "ORG", "PER"),
    mean_length: float = 12.0,
    density: float = 0.15,
    going_on: float = 0.5,
    miss: float = 0.25,
    cut: float = 0.1,
    stretch: float = 0.05,
    mistype: float = 0.1,
    invent: float = 0.01,
    alike: float = 10.0,
    random_state: int | np.random.Generator | None = 0,
) -> SimulatedSequences:
    """Simulate workers who mark spans in texts.

    Truth, workers, graph and mistakes have random streams of their own. The rates of a worker's
    mistakes are beta-distributed around the given means. A mistake concerns a whole span, so that
    the tags of its tokens depend on each other.

    Parameters
    ----------
    n_tasks, n_workers : int
    assignment : Assignment, optional
        The workers of each task; by default five per task, or all if there are fewer.
    types : sequence of str
    mean_length : float
        Mean number of tokens of a task, at least 2.
    density, going_on : float
        Probability that a span begins at a token outside, and that it goes on for another token.
    miss, cut, stretch, mistype, invent : float
        Mean probabilities of the workers' mistakes.
    alike : float
        Number of labels that the mean rates weigh as in those of each worker; more make workers
        more alike.
    random_state : int, numpy.random.Generator or None, default 0
        Seed; None for a different crowd every time.

    Returns
    -------
    SimulatedSequences

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> simulate.sequences(100, 20, simulate.PerTask(4))
    SimulatedSequences(CrowdSequences(100 tasks, 20 workers, 7 classes, 400 annotations))
    """
    check_integer("n_tasks", n_tasks, 1)
    check_integer("n_workers", n_workers, 1)
    check_number("mean_length", mean_length, 2.0)
    check_number("alike", alike, 1e-3)
    means = np.array([miss, cut, stretch, mistype, invent], dtype=np.float64)
    rates = {"density": density, "going_on": going_on, **dict(zip(MISTAKES, means, strict=True))}
    for name, rate in rates.items():
        check_number(name, float(rate), 0.0, 1.0)
    if not types or len(set(types)) < len(types):
        raise ParameterError(f"types is {types!r}; give one or more different names.")
    of_truth, of_workers, of_graph, of_mistakes = as_generator(random_state).spawn(4)
    graph = given_or_usual(assignment, n_workers)
    check_room(_BYTES_PER_TAG * mean_length * graph.expected_labels(n_tasks, n_workers), "The tags")
    scheme = TagScheme.of([f"B-{name}" for name in types])
    length = 2 + of_truth.poisson(mean_length - 2, n_tasks)
    pointer = np.append(0, np.cumsum(length))
    truth = _chain(scheme, pointer, density, going_on, of_truth)
    mistakes = _rates(means, n_workers, alike, of_workers)
    task, worker = drawn_pairs(graph, n_tasks, n_workers, of_graph)
    size = length[task]
    own = np.append(0, np.cumsum(size))
    seen = truth[np.repeat(pointer[task] - own[:-1], size) + np.arange(own[-1])]
    tags = _mistaken(scheme, seen, own, mistakes[worker], of_mistakes)
    data = CrowdSequences(
        task=task, worker=worker, tags=tags, pointer=own, tasks=np.arange(n_tasks),
        workers=np.arange(n_workers), classes=np.array(scheme.tags, dtype=object),
        scheme=scheme.name, task_columns={LENGTH: length},
    )  # fmt: skip
    names = np.array(scheme.tags, dtype=object)[truth].tolist()
    texts = [" ".join(names[a:b]) for a, b in pairwise(pointer.tolist())]
    return SimulatedSequences(data, np.array(texts, dtype=object), mistakes)


def _rates(means: Floats, n_workers: int, alike: float, rng: np.random.Generator) -> Floats:
    """Return each worker's rates of mistakes, from beta distributions around the means."""
    inside = np.clip(means, 1e-6, 1 - 1e-6)
    drawn = rng.beta(alike * inside, alike * (1 - inside), (n_workers, len(means)))
    return np.where((means > 0) & (means < 1), drawn, means)


def _chain(
    scheme: TagScheme, pointer: NDArray[np.int64], density: float, going_on: float,
    rng: np.random.Generator,
) -> NDArray[np.int32]:  # fmt: skip
    """Return the tags of a Markov chain, token by token for all sequences at once."""
    n_tokens = int(pointer[-1])
    begin, follow = rng.random(n_tokens) < density, rng.random(n_tokens) < going_on
    kind = rng.integers(0, len(scheme.types), n_tokens)
    tags = np.zeros(n_tokens, dtype=np.int32)
    length = np.diff(pointer)
    for t in range(int(length.max())):
        at = pointer[:-1][length > t] + t
        tags[at] = np.where(begin[at], 1 + 2 * kind[at], 0)
        if t:
            before = tags[at - 1]
            goes_on = (before > 0) & follow[at]
            tags[at] = np.where(goes_on, 2 * ((before + 1) // 2), tags[at])
    return tags


def _mistaken(
    scheme: TagScheme, seen: NDArray[np.int32], pointer: NDArray[np.int64], rates: Floats,
    rng: np.random.Generator,
) -> NDArray[np.int32]:  # fmt: skip
    """Return the workers' tags of what they have seen; ``rates`` has a row per sequence."""
    spans = scheme.spans(seen, pointer)
    chance, own = rng.random((4, len(spans.start))), rates[spans.sequence]
    missed, is_cut, stretched, mistyped = (chance[m] < own[:, m] for m in range(4))
    start, end = pointer[spans.sequence] + spans.start, pointer[spans.sequence] + spans.end
    following = np.append(start[1:], len(seen))
    room = np.minimum(pointer[spans.sequence + 1], following)
    end = np.where(is_cut & (end - start > 1), end - 1, end)
    end = np.where(stretched & ~is_cut & (end < room), end + 1, end)
    other = rng.integers(1, max(len(scheme.types), 2), len(start))
    kind = np.where(mistyped, (spans.kind + other) % len(scheme.types), spans.kind)
    kept = np.flatnonzero(~missed)
    tags = np.zeros(len(seen), dtype=np.int32)
    size = (end - start)[kept]
    inside = np.append(0, np.cumsum(size))
    tags[np.repeat(start[kept] - inside[:-1], size) + np.arange(inside[-1])] = scheme.tags_of(
        kind[kept], size
    )
    sequence = np.repeat(np.arange(len(rates)), np.diff(pointer))
    invented = (rng.random(len(seen)) < rates[sequence, 4]) & (tags == 0)
    # An invented span must not be continued by a tag that was inside another one.
    tags[invented] = 1 + 2 * rng.integers(0, len(scheme.types), int(invented.sum()))
    return tags
