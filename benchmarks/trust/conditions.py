"""Simulated crowds on which methods are trusted or not: thirteen conditions, sparse ones, clones.

Every condition is a function of a seed. The oracle knows all parameters that the labels were drawn
from; where labels depend on each other (colluders) it knows the workers' own matrices only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from wisecrowd import simulate
from wisecrowd.inference.engine import in_memory
from wisecrowd.kinds.classes.families.confusion import naive_bayes, safe_log
from wisecrowd.kinds.classes.prior import TaskPrior
from wisecrowd.simulate import SimulatedCrowd

N_TASKS, N_WORKERS = 2000, 50
HONEST = simulate.OneCoinWorkers(6, 2)  # right three times in four, some nearly always


@dataclass(frozen=True)
class Condition:
    """A way to simulate crowds, and whether Dawid and Skene's model with good workers holds."""

    name: str
    make: Callable[[int], SimulatedCrowd]
    well_specified: bool = True


def crowd(
    seed: int,
    bad: simulate.Population | None = None,
    share: float = 0.0,
    *,
    honest: simulate.Population = HONEST,
    per_task: int = 5,
    n_tasks: int = N_TASKS,
    n_workers: int = N_WORKERS,
    **options,
) -> SimulatedCrowd:
    """Return a crowd of which a share of the workers are of another population."""
    n_bad = round(share * n_workers)
    workers = (n_workers - n_bad) * honest
    if bad is not None and n_bad:
        workers = workers + n_bad * bad
    graph = simulate.PerTask(per_task)
    return simulate.crowd(
        n_tasks, workers, graph, **{"n_classes": 2, "random_state": seed, **options}
    )


SPAM, FOES = simulate.Spammers(), simulate.Adversaries(0.2)


def plot(seed: int, share: float, **options) -> SimulatedCrowd:
    """Return a crowd of which a share give the labels of one sheet that was filled in at random."""
    n_bad = round(share * N_WORKERS)
    copies = simulate.Copiers(0.95, sources=N_WORKERS - n_bad)
    workers = (N_WORKERS - n_bad) * HONEST + 1 * SPAM + (n_bad - 1) * copies
    graph = simulate.PerTask(options.pop("per_task", 5))
    return simulate.crowd(N_TASKS, workers, graph, n_classes=2, random_state=seed, **options)


CONDITIONS = (
    Condition("base", partial(crowd)),
    Condition("K = 4", partial(crowd, n_classes=4)),
    Condition("Dirichlet confusion", partial(
        crowd, honest=simulate.DirichletWorkers(6, 1), n_classes=3)),
    Condition("hard tasks", partial(crowd, difficulty=simulate.BetaDifficulty(1, 2)), False),
    Condition("30% spam", partial(crowd, bad=SPAM, share=0.3)),
    Condition("60% spam", partial(crowd, bad=SPAM, share=0.6)),
    Condition("20% adversaries", partial(crowd, bad=FOES, share=0.2)),
    Condition("40% adversaries", partial(crowd, bad=FOES, share=0.4), False),
    Condition("20% colluders", partial(plot, share=0.2), False),
    Condition("40% colluders", partial(plot, share=0.4), False),
    Condition("95/5 imbalance", partial(crowd, class_prior=[0.95, 0.05])),
    Condition("2 labels per task", partial(crowd, per_task=2)),
    Condition("sparse workers", partial(crowd, n_workers=1000)),
)  # fmt: skip

# Where maximum likelihood breaks down: hardly a label for each parameter of a worker.
SPARSE = (
    Condition("5000 workers with 4 labels, K = 50", partial(
        crowd, n_tasks=4000, n_workers=5000, n_classes=50, honest=simulate.OneCoinWorkers(17, 3))),
    Condition("5000 workers with 2 labels on average, K = 10", partial(
        crowd, n_workers=5000, n_classes=10)),
    Condition("2 labels per task and per worker, K = 4", partial(
        crowd, n_workers=1000, per_task=2, n_classes=4)),
)  # fmt: skip


def clones(seed: int) -> SimulatedCrowd:
    """Return a crowd in which six copy the labels of one worker who is right in 55%."""
    weak = simulate.FixedConfusion([[0.55, 0.45], [0.45, 0.55]])
    workers = 9 * simulate.OneCoinWorkers(8, 3) + 1 * weak + 5 * simulate.Copiers(sources=9)
    return simulate.crowd(N_TASKS, workers, simulate.Dense(), n_classes=2, random_state=seed)


def oracle(made: SimulatedCrowd) -> np.ndarray:
    """Return the posterior (n_tasks, n_classes) given the true matrices, prior and difficulties."""
    labels, K = made.labels, made.labels.n_classes
    if made.difficulty is None:
        nothing = TaskPrior(np.zeros((1, K)))
        return naive_bayes(in_memory(labels, nothing), made.confusion, made.class_prior)
    d = made.difficulty[labels.task][:, None]
    rows = (1 - d) * made.confusion[labels.worker, :, labels.label] + d / K  # (E, K)
    score = np.log(made.class_prior) + np.stack(
        [np.bincount(labels.task, safe_log(rows[:, k]), labels.n_tasks) for k in range(K)], axis=1
    )
    score = np.exp(score - score.max(axis=1, keepdims=True))
    return score / score.sum(axis=1, keepdims=True)
