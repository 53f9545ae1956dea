"""From a csv file of 10^7 annotations to labels on disk, against pandas just reading and coding it.

Every figure comes from a process of its own, after its imports (and, for the fit, its kernels) were
loaded: fresh memory is part of the work. The file is written in two orders: grouped by task, as an
export is, and in random order, as a log is; a hash table suffers from the second.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.rows import Row

PANDAS = """
import sys, time
import pandas as pd
start = time.process_time()
frame = pd.read_csv(sys.argv[1])
for name in ("task", "worker", "label"):
    pd.factorize(frame[name])
print(time.process_time() - start)
"""
READ = """
import sys, time
import numpy, pyarrow.compute, pyarrow.csv
from wisecrowd.io.tables import read
start = time.process_time()
labels = read(sys.argv[1])
print(time.process_time() - start)
assert labels.n_annotations == int(sys.argv[2]), labels
"""
PIPELINE = """
import os, sys, time
import numpy, pyarrow.compute, pyarrow.csv
import wisecrowd as wc
from benchmarks.rows import random_crowd
from wisecrowd.io.tables import read, write_table
wc.aggregation.DawidSkene(max_iter=2).fit(random_crowd(200_000, 2)[0])
start = time.process_time()
model = wc.aggregation.DawidSkene().fit(read(sys.argv[1]))
write_table(sys.argv[3], {
    "task": model.tasks_, "label": model.labels_, "confidence": model.probas_.max(axis=1),
})
print(time.process_time() - start)
"""


def write_crowd(path: Path, n_labels: int, *, shuffled: bool) -> None:
    """Write text ids, five labels per task, of workers who are right 8 times in 10."""
    rng = np.random.default_rng(0)
    n_tasks = n_labels // 5
    task = np.repeat(np.arange(n_tasks, dtype=np.int32), 5)
    worker = (rng.integers(0, 200, (n_tasks, 5)) + 200 * np.arange(5)).ravel()
    truth = rng.integers(0, 2, n_tasks)
    label = np.where(rng.random(len(task)) < 0.8, truth[task], 1 - truth[task])
    order = rng.permutation(len(task)) if shuffled else np.arange(len(task))
    tasks = np.array([f"task-{i:07d}" for i in range(n_tasks)], dtype=object)
    workers = np.array([f"worker-{j:03d}" for j in range(1000)], dtype=object)
    classes = np.array(["cat", "dog"], dtype=object)
    with path.open("w") as file:
        file.write("task,worker,label\n")
        for rows in np.array_split(order, max(1, n_labels // 100_000)):
            columns = (tasks[task[rows]], workers[worker[rows]], classes[label[rows]])
            file.write("".join([f"{t},{w},{c}\n" for t, w, c in zip(*columns, strict=True)]))


def cpu(script: str, *arguments: object, repeat: int = 3) -> float:
    """Return the smallest CPU time that a script printed over several runs."""
    paths = [str(Path(__file__).parents[2]), *sys.path]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    times = []
    for _ in range(repeat):
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        times.append(float(done.stdout.split()[-1]))
    return min(times)


def run(n_labels: int = 10_000_000) -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        answers, output = Path(folder) / "answers.csv", Path(folder) / "labels.csv"
        for order in ("grouped by task", "in random order"):
            write_crowd(answers, n_labels, shuffled=order == "in random order")
            pandas = cpu(PANDAS, answers)
            read = cpu(READ, answers, n_labels)
            whole = cpu(PIPELINE, answers, n_labels, output)
            what = f"{n_labels:.0e} string-id csv rows, {order}"
            rows += [
                Row(
                    f"{what}: to codes",
                    "–",
                    f"{read / pandas:.2f}× ({read:.1f} s, pandas {pandas:.1f} s)",
                ),
                Row(
                    f"{what}: to fitted labels on disk",
                    "≤ 2× pandas.read_csv + 3 factorize",
                    f"{whole / pandas:.2f}× ({whole:.1f} s)",
                    whole <= 2 * pandas,
                ),
            ]
    return rows


if __name__ == "__main__":
    print(f"pyarrow {pa.__version__}, numpy {np.__version__}")
    print("\n".join(row.line() for row in run()))
