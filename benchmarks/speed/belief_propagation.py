"""Belief propagation: speed and memory on 10^6 labels, accuracy on regular graphs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

import wisecrowd as wc
from benchmarks.rows import Row
from benchmarks.speed.memory import PEAK
from wisecrowd import simulate
from wisecrowd.inference.priors import OneCoinPrior

TARGETS = {0.2: 0.978, 0.5: 0.915, 1.0: 0.818, 2.0: 0.757}
SCRIPT = f"""
import sys, time
import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.inference.priors import OneCoinPrior
wc.set_threads(1)
def fit(n_tasks, rounds):
    made = simulate.crowd(n_tasks, simulate.OneCoinWorkers(2, 1), simulate.Regular(3, 4),
                          n_workers=3 * n_tasks // 4, n_classes=2)
    def job():
        wc.aggregation.BeliefPropagation(
            prior=OneCoinPrior(2, 1), max_iter=rounds, tol=0.0, damping=0.0
        ).fit(made.labels)
    return made.labels.n_annotations, job
fit(40_000, 1)[1]()  # compiled
n, job = fit(333_332, 20)
{PEAK}
start = time.process_time()
before = resident()[0]
job()
print(time.process_time() - start, (resident()[1] - before) / n)
"""


def run(n_seeds: int = 30) -> list[Row]:
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, per_label = (float(x) for x in done.stdout.split())
    what = "BP, 10^6 labels, 4 tasks per worker, 20 iterations"
    rows = [
        Row(what, "≤ 10 s CPU", f"{seconds:.1f} s", seconds <= 10),
        Row(f"{what}: peak memory", "≤ 200 bytes per label", f"{per_label:.0f}", per_label <= 200),
    ]
    for a, bar in TARGETS.items():
        scores = []
        for seed in range(n_seeds):
            made = simulate.crowd(
                1000, simulate.OneCoinWorkers(a, a / 2), simulate.Regular(3, 4), n_workers=750,
                n_classes=2, random_state=seed,
            )  # fmt: skip
            model = wc.aggregation.BeliefPropagation(prior=OneCoinPrior(a, a / 2)).fit(made.labels)
            scores.append(np.mean(model.labels_ == made.truth))
        mean = float(np.mean(scores))
        what = f"BP, (3, 4)-regular graph, workers Beta({a:g}, {a / 2:g}), {n_seeds} seeds"
        rows.append(Row(what, f"≥ {bar}", f"{mean:.4f}", mean >= bar))
    return rows


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
