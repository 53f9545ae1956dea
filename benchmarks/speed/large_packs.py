"""Packs of 10^7 labels and more: packing, disk, memory and passes, against the engine in memory.

python -m benchmarks.speed.large_packs 1e7 1e8 3e8     sizes; 10^7 by default
WISECROWD_SCRATCH=DIR                                  where the files go: 60 bytes per label

The inputs are several parquet files with text ids: five labels per task, 10^5 workers, 4 classes.
CPU seconds and the most memory beyond that after a small run (libraries, compiled kernels) come
from a process per figure. Rows are printed as they are measured. The first row checks that packs
do not depend on order and split of their inputs.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.rows import Row
from benchmarks.speed.packs import PASSES, measure, write_crowd

N_WORKERS = 100_000
PER_FILE = 20_000_000  # labels
LARGEST_IN_MEMORY = 10_000_000  # labels of the memory engine's figure
N_CHECKED = 1_000_000  # labels packed in several orders and splits

PACK = """
from pathlib import Path

def size(folder):
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())

inputs, small, output = sys.argv[1], sys.argv[2], Path(sys.argv[4])
most_of = {"buckets": 0, "all": 0}

def report(step):
    most_of["buckets"] = max(most_of["buckets"], size(output / "buckets"))
    most_of["all"] = max(most_of["all"], size(output))

pack(small, sys.argv[3])  # loads libraries and compiles the hash
base, start = memory("VmRSS"), cpu()
made = pack(inputs, output, report=report)
print(json.dumps({"cpu": cpu() - start, "memory": memory("VmHWM") - base, "pack": made.n_bytes,
                  "shards": len(made.summary.shards), **most_of}))
"""


def write_inputs(folder: Path, n_labels: int, per_file: int = PER_FILE) -> None:
    """Write a crowd as several files; a task lies in one of them."""
    folder.mkdir()
    for number, first in enumerate(range(0, n_labels, per_file)):
        write_crowd(
            folder / f"{number:03d}.parquet", min(per_file, n_labels - first),
            n_workers=N_WORKERS, first_task=first // 5, seed=number,
        )  # fmt: skip


def same_digests(folder: Path) -> Row:
    """Pack the same rows as one file, as seven, and shuffled."""
    from wisecrowd.io.packing import pack

    write_inputs(folder / "rows", N_CHECKED, N_CHECKED // 4)
    table = pq.read_table(folder / "rows")
    shuffled = table.take(np.random.default_rng(3).permutation(len(table)))
    cuts = np.linspace(0, len(table), 8).astype(int)
    for name, source, parts in (("one", table, [0, len(table)]), ("cut", shuffled, cuts)):
        (folder / name).mkdir()
        for number, (start, end) in enumerate(pairwise(parts)):
            pq.write_table(source.slice(start, end - start), folder / name / f"{number}.parquet")
    found = {
        pack(f"{folder}/{name}/*.parquet", folder / f"{name}.pack").digest
        for name in ("rows", "one", "cut")
    }
    return Row(f"digests of 3 orders and splits, {N_CHECKED:.0e} labels", "one", f"{len(found)}",
               len(found) == 1)  # fmt: skip


def size_rows(
    folder: Path, n_labels: int, base: float | None
) -> Generator[Row, None, float | None]:
    """Yield the rows of one size; ``base`` is the memory engine's CPU per label and pass.

    Sizes that fit into memory measure and return it.
    """
    size, small, packed = f"{n_labels:.0e} labels", folder / "small.pack", folder / "crowd.pack"
    write_inputs(folder / "inputs", n_labels)
    write_crowd(folder / "small.parquet", 200_000)
    disk = sum(file.stat().st_size for file in (folder / "inputs").iterdir())
    made = measure(PACK, folder / "inputs/*.parquet", folder / "small.parquet", small, packed)
    shutil.rmtree(folder / "inputs")
    most = 110 * n_labels / 1e8
    yield Row(f"pack {size}: CPU", f"<= {most:.3g} s", f"{made['cpu']:.1f} s", made["cpu"] <= most)
    yield Row(f"pack {size}: memory", "<= 1.5 GB", _size(made["memory"]), made["memory"] <= 1.5e9)
    yield Row(f"pack {size}: disk of inputs, buckets, pack, most at once", "–",
              ", ".join(_size(x) for x in (disk, made["buckets"], made["pack"],
                                           disk + made["all"])))  # fmt: skip
    if n_labels <= LARGEST_IN_MEMORY:
        runs = [measure(PASSES, packed, small, e) for e in ("memory", "files") * 2]
        memory, files = (min(runs[i::2], key=lambda run: run["pass"]) for i in (0, 1))
        base = memory["pass"] / n_labels
        yield Row(f"Dawid-Skene, {size}, memory engine", "–", f"{base * 1e9:.1f} ns per label and "
                  f"pass, {_size(memory['memory'])} for the fit")  # fmt: skip
    else:
        files = measure(PASSES, packed, small, "files")
    assert base is not None
    each = files["pass"] / n_labels
    factor, limit = (1.2, 600e6) if n_labels <= LARGEST_IN_MEMORY else (1.3, 2e9)
    yield Row(f"{size}, files: a pass", f"<= {factor} x memory",
              f"{each * 1e9:.1f} ns per label, {each / base:.2f} x",
              each <= factor * base)  # fmt: skip
    yield Row(f"{size}, files: memory", f"<= {_size(limit)}", _size(files["memory"]),
              files["memory"] <= limit)  # fmt: skip
    yield Row(f"{size}, files: 10 passes and answers", "–", f"{files['whole']:.1f} CPU s")
    return base


def memory_figure(folder: Path) -> float:
    """Return CPU seconds per label and pass of the memory engine."""
    write_inputs(folder / "inputs", LARGEST_IN_MEMORY)
    write_crowd(folder / "small.parquet", 200_000)
    small, packed = folder / "small.pack", folder / "crowd.pack"
    measure(PACK, folder / "inputs/*.parquet", folder / "small.parquet", small, packed)
    runs = [measure(PASSES, packed, small, "memory")["pass"] for _ in range(2)]
    return min(runs) / LARGEST_IN_MEMORY


def rows(sizes: list[int]) -> Iterator[Row]:
    """Yield every row as it is measured."""
    scratch = os.environ.get("WISECROWD_SCRATCH")
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        yield same_digests(Path(name))
    base = None
    if min(sizes) > LARGEST_IN_MEMORY:
        with tempfile.TemporaryDirectory(dir=scratch) as name:
            base = memory_figure(Path(name))
    for n_labels in sorted(sizes):
        with tempfile.TemporaryDirectory(dir=scratch) as name:
            base = yield from size_rows(Path(name), n_labels, base)


def run() -> list[Row]:
    return list(rows([LARGEST_IN_MEMORY]))


def _size(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"


if __name__ == "__main__":
    for row in rows([int(float(one)) for one in sys.argv[1:]] or [LARGEST_IN_MEMORY]):
        print(row.line(), flush=True)
