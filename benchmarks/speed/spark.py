"""Spark against the files engine: CPU per pass, memory, and the same bits.

python -m benchmarks.speed.spark           10^7 labels, as ``make spark`` runs it
python -m benchmarks.speed.spark 1e6       another size

It needs Java 17 and the extra ``spark``. CPU is that of all processes: driver, Java and the Python
workers, from /proc. A pass is the difference between fits of 8 and of 2 passes.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow.dataset as ds

import wisecrowd as wc
from benchmarks.rows import Row
from benchmarks.speed.packs import N_LABELS, write_crowd
from wisecrowd.aggregation import DawidSkene
from wisecrowd.packs.spark import get_session

FEW, MANY = 2, 8  # passes
CORES = 2
MOST = 6.0  # CPU seconds per pass at 10^7 labels


def family() -> dict[int, int]:
    """Return this process and all below it, with their parents."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it ended meanwhile
                continue
            parents[int(entry.name)] = int(fields[1])
    found = [os.getpid()]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return {pid: parents[pid] for pid in found if pid in parents}


def is_python_of_spark(pid: int) -> bool:
    try:
        return b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def kill_a_worker(killed: list[int]) -> None:
    """Kill the first Python worker that has computed for half a second."""
    while not killed:
        time.sleep(0.05)
        for pid, parent in family().items():
            if is_python_of_spark(pid) and is_python_of_spark(parent) and own_cpu(pid) > 0.5:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                return


def own_cpu(pid: int) -> float:
    """Return the CPU seconds of a process and of its children that ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Return the CPU time of all processes, those that ended too."""
    return sum(own_cpu(pid) for pid in family())


class Memory:
    """The most memory of Java and of a Python worker while a block runs, in bytes."""

    def __enter__(self) -> Memory:
        self.java = self.worker = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            for pid in family():
                try:
                    command = Path(f"/proc/{pid}/cmdline").read_bytes()
                    size = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                except OSError:
                    continue
                size *= os.sysconf("SC_PAGE_SIZE")
                if b"pyspark.daemon" in command:
                    self.worker = max(self.worker, size)
                elif b"java" in command.split(b"\0")[0]:
                    self.java = max(self.java, size)


def same_bits(one, other) -> bool:
    confusions = one.fit.confusion, other.fit.confusion
    return one.fit.history == other.fit.history and np.array_equal(*confusions)


def answers(folder: Path) -> dict[str, np.ndarray]:
    table = ds.dataset(folder).to_table()
    return {name: table[name].to_numpy() for name in table.column_names}


def run(n_labels: int = N_LABELS) -> list[Row]:
    with tempfile.TemporaryDirectory(dir=os.environ.get("WISECROWD_SCRATCH")) as name:
        folder = Path(name)
        write_crowd(folder / "crowd.parquet", n_labels)
        pack = wc.pack(folder / "crowd.parquet", folder / "crowd.pack", shards=16)
        (folder / "crowd.parquet").unlink()
        wc.set_threads(CORES)
        session = get_session()
        try:
            return rows(session, pack, folder)
        finally:
            session.stop()  # our own


def rows(session, pack, folder: Path) -> list[Row]:
    session.sparkContext.setLogLevel("OFF")  # it prints pages about the worker that is killed
    engine = wc.engines.spark(session, pack)

    def fit(passes: int, engine, place: Path):
        method = DawidSkene(max_iter=passes, tol=0.0, accelerate=False)
        begun, wall = cpu_seconds(), time.perf_counter()
        found = wc.fit_pack(method, pack, place, engine=engine)
        return found, cpu_seconds() - begun, time.perf_counter() - wall

    wc.set_threads(1)
    plain, *_ = fit(FEW, "files", folder / "first")  # compiles the kernels
    killed: list[int] = []
    threading.Thread(target=kill_a_worker, args=(killed,), daemon=True).start()
    mended, *_ = fit(FEW, engine, folder / "first")  # starts the workers
    here, by_files, _ = fit(MANY, "files", folder / "files")
    with Memory() as memory:
        _, few, few_wall = fit(FEW, engine, folder / "first")
        there, many, many_wall = fit(MANY, engine, folder / "spark")
    one, wall = (many - few) / (MANY - FEW), (many_wall - few_wall) / (MANY - FEW)
    limit = MOST * max(1.0, pack.summary.n_annotations / 1e7)
    mine, others = answers(folder / "files"), answers(folder / "spark")
    same = same_bits(here, there)
    unharmed = bool(killed) and same_bits(plain, mended)
    same_answers = all((mine[key] == others[key]).all() for key in mine)
    size = f"{pack.summary.n_annotations:.0e} labels, {len(pack.summary.shards)} shards"
    return [
        Row(f"Spark local[{CORES},4], {size}: a pass", f"<= {limit:.3g} CPU s",
            f"{one:.2f} CPU s, {wall:.2f} s", one <= limit),
        Row(f"{MANY} passes and answers: Spark, files", "–", f"{many:.2f}, {by_files:.2f} CPU s"),
        Row("Spark: memory of Java, of a Python worker", "–",
            f"{memory.java / 1e6:,.0f} MB, {memory.worker / 1e6:,.0f} MB"),
        Row("Spark and files: history and confusion", "bitwise", str(same), same),
        Row("the same after a Python worker was killed", "bitwise", str(unharmed), unharmed),
        Row("Spark and files: answers", "bitwise", str(same_answers), same_answers),
    ]  # fmt: skip


if __name__ == "__main__":
    found = run(int(float(sys.argv[1])) if len(sys.argv) > 1 else N_LABELS)
    for row in found:
        print(row.line())
    sys.exit(not all(row.met for row in found if row.bar == "bitwise"))
