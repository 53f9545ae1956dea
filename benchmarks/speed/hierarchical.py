"""A pass of HierarchicalDawidSkene beside one of DawidSkene, on 10^6 labels."""

from __future__ import annotations

import numpy as np

import wisecrowd as wc
from benchmarks.rows import Row, cpu_seconds, random_crowd
from wisecrowd.inference.engine import in_memory
from wisecrowd.inference.loop import first_params
from wisecrowd.kinds.classes.families.posteriors import Start
from wisecrowd.kinds.classes.prior import TaskPrior

BAR = 8  # times the CPU time of a Dawid-Skene pass
ROUNDS = 5  # both are measured in turn, because other processes disturb them


def one_pass(method, labels):
    """Return a function that runs one pass over the annotations, compiled."""
    problem = in_memory(labels, TaskPrior(np.zeros((1, labels.n_classes))))
    model, shards = method._model(problem), problem.cut(labels.n_workers * labels.n_classes**2)
    params, states = first_params(model, shards, Start())

    def run():
        return shards.map_reduce(model, "local_step", states, params)

    run()
    return run


def run(n_labels: int = 1_000_000) -> list[Row]:
    rows = []
    for n_classes in (2, 4, 10):
        labels, _ = random_crowd(n_labels, n_classes)
        plain = one_pass(wc.aggregation.DawidSkene(), labels)
        ours = one_pass(wc.aggregation.HierarchicalDawidSkene(), labels)
        pairs = [(cpu_seconds(plain, 3), cpu_seconds(ours, 3)) for _ in range(ROUNDS)]
        theirs, mine = np.min(pairs, axis=0) / n_labels * 1e9
        ratio = mine / theirs
        what = f"a pass of hierarchical-dawid-skene, 10^6 labels, K = {n_classes}"
        measured = f"{ratio:.1f} ({mine:.1f} against {theirs:.1f} ns per label)"
        rows.append(Row(what, f"≤ {BAR} Dawid-Skene passes", measured, bool(ratio <= BAR)))
    return rows


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
