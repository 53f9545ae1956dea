"""GaussianEM on 10^7 numbers: CPU time per label and sweep, and memory with the container."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.rows import Row
from benchmarks.speed.memory import PEAK

SCRIPT = f"""
import sys, time
import numpy as np
import wisecrowd as wc
wc.set_threads(1)
rng = np.random.default_rng(0)
def columns(n, n_workers=1000, per_task=5):
    n_tasks, step = n // per_task, n_workers // per_task
    task = np.repeat(np.arange(n_tasks), per_task)
    worker = (rng.integers(0, step, (n_tasks, per_task)) + step * np.arange(per_task)).ravel()
    noise = rng.uniform(.3, 1.5, n_workers)
    value = rng.normal(size=n_tasks)[task] + noise[worker] * rng.normal(size=n)
    order = rng.permutation(n)
    return task[order], worker[order], value[order]
small = wc.CrowdNumbers.from_arrays(*columns(200_000))
wc.aggregation.GaussianEM(max_iter=2).fit(small)  # compiled and imported before the baseline
n = int(sys.argv[1])
given = columns(n)
{PEAK}
before, _ = resident()
data = wc.CrowdNumbers.from_arrays(*given)
def seconds(sweeps):
    start = time.process_time()
    wc.aggregation.GaussianEM(max_iter=sweeps, tol=0.0).fit(data)
    return time.process_time() - start
few, many = seconds(2), seconds(12)
_, peak = resident()
print((many - few) / 10 / n * 1e9, (peak - before) / n)
"""


def run(n_labels: int = 10_000_000) -> list[Row]:
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(n_labels)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    nanoseconds, per_label = map(float, result.stdout.split())
    what = f"gaussian-em, {n_labels:.0e} numbers in random order: "
    return [
        Row(what + "one sweep, one thread", "≤ 25 ns per label", f"{nanoseconds:.1f} ns",
            nanoseconds <= 25),
        Row(what + "peak memory beyond the columns, with the container", "≤ 60 bytes per label",
            f"{per_label:.1f} bytes", per_label <= 60),
    ]  # fmt: skip


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
