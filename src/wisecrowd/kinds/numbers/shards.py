"""Shards of numeric labels: ranges of tasks in the form that kernels take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

import numpy as np

from wisecrowd.inference.engine import cut_tasks, even_ranges
from wisecrowd.kernels import kernels_for
from wisecrowd.kernels.arguments import TaskNumbers
from wisecrowd.kinds.numbers.answers import NumberPrior
from wisecrowd.kinds.numbers.container import CrowdNumbers


@dataclass(frozen=True, eq=False)
class NumberShard:
    """A range of tasks with their numbers.

    Attributes
    ----------
    tasks : slice
        The range among all tasks.
    numbers : TaskNumbers
        Row pointers from 0 on, workers, values, weights, and questions of the tasks.
    prior : NumberPrior
        The prior and gold of these tasks.
    work : int
        The size of the whole problem, so that all shards run the same kernels.
    """

    tasks: slice
    numbers: TaskNumbers
    prior: NumberPrior
    work: int

    @property
    def n_tasks(self) -> int:
        """Number of tasks in the shard."""
        return len(self.numbers.indptr) - 1

    @cached_property
    def kernels(self) -> ModuleType:
        """The kernels of models of noise, which are compiled if the whole problem is large."""
        return kernels_for("worker_noise", self.work)


@cut_tasks.register
def cut_numbers(data: CrowdNumbers, prior: NumberPrior, n_shards: int) -> list[NumberShard]:
    """Cut into shards of tasks with about equally many annotations, whose arrays are views."""
    _, question = data.questions

    def shard(first: int, last: int) -> NumberShard:
        pointers = data.indptr[first : last + 1]
        rows, tasks = slice(pointers[0], pointers[-1]), slice(first, last)
        numbers = TaskNumbers(
            pointers - pointers[0] if pointers[0] else pointers,
            data.worker[rows],
            data.value[rows],
            None if data.weight is None else data.weight[rows],
            None if question is None else np.maximum(question[tasks], 0),
        )
        return NumberShard(tasks, numbers, _part(prior, tasks), data.n_annotations)

    return [shard(first, last) for first, last in even_ranges(data, n_shards)]


def _part(prior: NumberPrior, tasks: slice) -> NumberPrior:
    parts = (prior.mean, prior.variance, prior.gold)
    return NumberPrior(*(None if part is None else part[tasks] for part in parts))
