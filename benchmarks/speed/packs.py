"""Packs: cost of packing and of a pass by shards, against the engine in memory.

python -m benchmarks.speed.packs            10^7 labels
python -m benchmarks.speed.packs 1e8        another size; disk: about 60 bytes per label
python -m benchmarks.speed.packs 5e8 judges only the five judges who label everything

Every figure comes from a process of its own, which prints CPU seconds and the most memory beyond
what was in use after a small run. A pass is the difference between fits of 10 and of 2 passes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.rows import Row

N_LABELS = 10_000_000
N_WORKERS, N_CLASSES, PER_TASK, N_JUDGES = 20_000, 4, 5, 5
STRETCH = 200_000  # tasks written at once
SINGLE = 1_000_000  # tasks that rows are compared with one by one

PRELUDE = """
import json, resource, sys, time
import numpy as np, pyarrow.parquet
import wisecrowd as wc
from wisecrowd.aggregation import DawidSkene
from wisecrowd.packs.fit import fit_pack
from wisecrowd.io.packing import pack

def memory(name):  # VmHWM: the most so far; ru_maxrss would be handed down from the parent
    lines = open("/proc/self/status").read().splitlines()
    return next(int(x.split()[1]) * 1024 for x in lines if x.startswith(name))

def cpu():
    own, others = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in (own, others))

wc.set_threads(1)
"""
PACK = """
pack(sys.argv[2], sys.argv[3])  # a small one first: loads libraries and compiles the hash
base, start = memory("VmRSS"), cpu()
made = pack(sys.argv[1], sys.argv[4])
print(json.dumps({"cpu": cpu() - start, "memory": memory("VmHWM") - base, "disk": made.n_bytes,
                  "rows": sum(s.n_rows for s in made.summary.shards)}))
"""
PASSES = """
if __name__ == "__main__":
    engine = sys.argv[3]
    labels = wc.read(sys.argv[1]) if engine == "memory" else None

    def fit(passes, small=False):
        method = DawidSkene(max_iter=passes, tol=0.0, accelerate=False)
        if engine == "memory":
            return method._fit_without_checks(labels)
        options = {"engine": "pool", "processes": int(engine[-1])} if "pool" in engine else {}
        return fit_pack(method, sys.argv[2] if small else sys.argv[1], **options)

    fit(2, small=True)  # loads libraries and compiles the kernels
    base, times = memory("VmRSS"), []
    for passes in (2, 10):
        start = cpu()
        found = fit(passes)
        times.append(cpu() - start)
    history = found.history_ if engine == "memory" else found.fit.history
    print(json.dumps({"pass": (times[1] - times[0]) / 8, "memory": memory("VmHWM") - base,
                      "whole": times[1], "objective": history[-1]}))
"""

JUDGES = """
from wisecrowd.kinds.classes.packed.patterns import merged_rows
from wisecrowd.packs.pack import Pack

start = cpu()
found = fit_pack(DawidSkene(), sys.argv[1])
fit = cpu() - start
rows = merged_rows(Pack(sys.argv[1]))
print(json.dumps({"fit": fit, "rows": 0 if rows is None else rows.n_tasks,
                  "n_iter": found.fit.n_iter, "history": list(found.fit.history),
                  "confusion": found.fit.confusion.ravel().tolist()}))
"""
SINGLE_TASKS = """
pack(sys.argv[1], sys.argv[2], patterns="never")
print(json.dumps({}))
"""


def write_crowd(
    path: Path, n_labels: int, *, n_workers: int = N_WORKERS, first_task: int = 0, seed: int = 0
) -> None:
    """Write text ids in random order within stretches, five labels per task."""
    accuracy = np.random.default_rng(0).uniform(0.5, 0.95, n_workers)
    rng = np.random.default_rng([1, seed])
    workers, classes = pa.array([f"w{j}" for j in range(n_workers)]), pa.array(list("abcd"))
    names = pa.schema([(name, pa.string()) for name in ("task", "worker", "label")])
    with pq.ParquetWriter(path, names) as writer:
        end = first_task + n_labels // PER_TASK
        for first in range(first_task, end, STRETCH):
            n = min(STRETCH, end - first)
            order = rng.permutation(n * PER_TASK)
            task = np.repeat(np.arange(first, first + n), PER_TASK)[order]
            truth = np.repeat(rng.integers(N_CLASSES, size=n), PER_TASK)[order]
            # distinct workers per task: one of each fifth of the workers
            fifth = np.tile(np.arange(PER_TASK), n)[order]
            worker = rng.integers(n_workers // PER_TASK, size=len(order)) * PER_TASK + fifth
            right = rng.random(len(order)) < accuracy[worker]
            other = (truth + rng.integers(1, N_CLASSES, size=len(order))) % N_CLASSES
            texts = pc.binary_join_element_wise("task-", pa.array(task).cast(pa.string()), "")
            columns = [
                texts, workers.take(pa.array(worker)),
                classes.take(pa.array(np.where(right, truth, other))),
            ]  # fmt: skip
            writer.write_table(pa.Table.from_arrays(columns, schema=names))


def write_judges(path: Path, n_tasks: int) -> None:
    """Write the answers of five judges to every task, of three classes."""
    rng = np.random.default_rng(1)
    names = pa.schema([("task", pa.int64()), ("worker", pa.string()), ("label", pa.string())])
    judges, classes = pa.array([f"judge-{j}" for j in range(N_JUDGES)]), pa.array(list("abc"))
    with pq.ParquetWriter(path, names) as writer:
        for first in range(0, n_tasks, STRETCH):
            n = min(STRETCH, n_tasks - first)
            truth = np.repeat(rng.integers(3, size=n), N_JUDGES)
            who = np.tile(np.arange(N_JUDGES), n)
            right = rng.random(len(who)) < np.linspace(0.6, 0.9, N_JUDGES)[who]
            label = np.where(right, truth, rng.integers(3, size=len(who)))
            columns = [
                pa.array(np.repeat(np.arange(first, first + n), N_JUDGES)),
                judges.take(pa.array(who)), classes.take(pa.array(label)),
            ]  # fmt: skip
            writer.write_table(pa.Table.from_arrays(columns, schema=names))


def measure(code: str, *arguments: object) -> dict[str, float]:
    """Run code in a process of its own and return what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "measured.py"  # a file: processes of a pool import it
        script.write_text(PRELUDE + code)
        command = [sys.executable, str(script), *map(str, arguments)]
        path = os.pathsep.join([str(Path("src").resolve()), os.environ.get("PYTHONPATH", "")])
        found = subprocess.run(
            command, capture_output=True, text=True, check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
        )  # fmt: skip
    return json.loads(found.stdout)


def run(n_labels: int = N_LABELS, only: str = "") -> list[Row]:
    with tempfile.TemporaryDirectory(dir=os.environ.get("WISECROWD_SCRATCH")) as name:
        folder = Path(name)
        crowd = [] if only == "judges" else crowd_rows(folder, n_labels)
        return [*crowd, *judge_rows(folder, n_labels // N_JUDGES)]


def crowd_rows(folder: Path, n_labels: int) -> list[Row]:
    size, small, packed = f"{n_labels:.0e} labels", folder / "small.pack", folder / "crowd.pack"
    write_crowd(folder / "crowd.parquet", n_labels)
    write_crowd(folder / "small.parquet", 200_000)
    made = measure(PACK, folder / "crowd.parquet", folder / "small.parquet", small, packed)
    (folder / "crowd.parquet").unlink()
    memory = measure(PASSES, packed, small, "memory")
    files = measure(PASSES, packed, small, "files")
    pool = measure(PASSES, packed, small, "pool 2")
    most = 110 * n_labels / 1e8
    ratio = files["pass"] / memory["pass"]
    apart = abs(files["objective"] / memory["objective"] - 1)
    limit = 600e6 if n_labels <= 10**7 else 2e9
    return [
        Row(f"pack {size}: CPU", f"<= {most:.3g} s", f"{made['cpu']:.1f} s", made["cpu"] <= most),
        Row(f"pack {size}: memory", "<= 1.5 GB", _size(made["memory"]), made["memory"] <= 1.5e9),
        Row(f"pack {size}: disk", "–", _size(made["disk"])),
        Row(f"Dawid-Skene, {size}, memory: a pass", "–", f"{memory['pass']:.3f} CPU s"),
        Row("files: a pass", "<= 1.2 x memory", f"{files['pass']:.3f} s, {ratio:.2f} x",
            ratio <= 1.2),
        Row("files: memory", f"<= {_size(limit)}", _size(files["memory"]),
            files["memory"] <= limit),
        Row("files, 10 passes and answers", "–", f"{files['whole']:.1f} CPU s"),
        Row("files against memory: objective", "1e-9", f"{apart:.1e}", apart <= 1e-9),
        Row("pool of 2: a pass", "–", f"{pool['pass']:.3f} CPU s"),
        Row("pool and files: objective", "bitwise", f"{pool['objective']!r}",
            pool["objective"] == files["objective"]),
    ]  # fmt: skip


def judge_rows(folder: Path, n_tasks: int) -> list[Row]:
    """Five judges label everything: distinct rows, the cost of a fit, and exactness.

    The fit is the first one of a process, so that it also loads its kernels.
    """
    small, packed, single = (folder / f"{name}.pack" for name in ("few", "judges", "single"))
    write_judges(folder / "judges.parquet", n_tasks)
    write_judges(folder / "few.parquet", 20_000)
    write_judges(folder / "million.parquet", min(n_tasks, SINGLE))
    made = measure(PACK, folder / "judges.parquet", folder / "few.parquet", small, packed)
    found = measure(JUDGES, packed)
    measure(SINGLE_TASKS, folder / "million.parquet", single)
    measure(PACK, folder / "million.parquet", folder / "few.parquet", folder / "few2.pack",
            folder / "million.pack")  # fmt: skip
    whole, rows = measure(JUDGES, single), measure(JUDGES, folder / "million.pack")
    apart = max(_apart(whole[name], rows[name]) for name in ("history", "confusion"))
    size = f"five judges, {n_tasks:.0e} tasks"
    return [
        Row(f"{size}: pack", "–", f"{made['cpu']:.1f} CPU s, {_size(made['memory'])}"),
        Row(f"{size}: distinct rows", "<= 1024", f"{found['rows']:.0f}",
            0 < found["rows"] <= 1024),
        Row(f"{size}: Dawid-Skene, {found['n_iter']} passes", "<= 1 CPU s", f"{found['fit']:.2f} s",
            found["fit"] <= 1),
        Row(f"{min(n_tasks, SINGLE):.0e} tasks: rows against single tasks", "1e-12",
            f"{apart:.1e}", apart <= 1e-12),
    ]  # fmt: skip


def _apart(one: list[float], other: list[float]) -> float:
    """Return the largest relative difference of two lists of numbers."""
    if len(one) != len(other):
        return np.inf
    return float(np.max(np.abs(np.array(one) - other) / np.maximum(np.abs(one), 1e-300)))


def _size(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"


if __name__ == "__main__":
    n_labels = int(float(sys.argv[1])) if len(sys.argv) > 1 else N_LABELS
    for row in run(n_labels, sys.argv[2] if len(sys.argv) > 2 else ""):
        print(row.line())
