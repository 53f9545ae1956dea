"""Pool of processes that runs the steps of a pack's shards.

Processes get the number of a shard and the name of a file with model and parameters, which they map
into memory. Labels never travel. A process that dies is replaced, and its shards run again.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from concurrent.futures.process import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.memory_check import readable_bytes
from wisecrowd.core.parameter_checks import check_integer
from wisecrowd.engines.threads import set_threads
from wisecrowd.packs.files import Job, add, package_of, run_block
from wisecrowd.packs.pack import Pack
from wisecrowd.packs.values import read_values, write_values

MOST_DEATHS = 3  # of processes that work on the same shard
JOB = "job"


def run_task(pack: str, digest: str, first: int, size: int, job: str, package: str) -> Any:
    """Run a job on an aligned block of shards; this is what another process calls.

    Parameters
    ----------
    pack, digest : str
        The folder of the pack, and the digest that it must have.
    first, size : int
        The block.
    job : str
        File with model, step and parameters.
    package : str
        Package of the model besides wisecrowd.
    """
    opened = Pack(pack)
    if opened.digest != digest:
        raise DataError(f"{pack} is another pack than the one that the fit began with.")
    return run_block(opened, first, size, read_values(Path(job), package))


def job_file(scratch: Path, name: str) -> Path:
    """Return the file of a job."""
    return scratch / f"{JOB}-{name}"


def remove_jobs(scratch: Path) -> None:
    """Remove the files of jobs that a killed run left; the folder is one that we marked."""
    for file in (*scratch.glob(f"{JOB}-*"), *scratch.glob(f".{JOB}-*.tmp")):
        file.unlink(missing_ok=True)


def _prepare() -> None:
    """Prepare a new process: parallel processes use one thread each."""
    set_threads(1)


class Pool:
    """Runs jobs on the shards of a pack with several processes.

    Parameters
    ----------
    scratch : Path
        Folder for the files of jobs; all processes must see it.
    processes : int
        Number of processes of our own, started by "spawn".
    executor : concurrent.futures.Executor, optional
        Runs the tasks instead; it belongs to the caller and is not replaced when it breaks.
    block : int
        Shards per task, a power of two; it does not change results.
    """

    def __init__(
        self,
        scratch: Path,
        processes: int = 1,
        executor: Executor | None = None,
        block: int = 1,
    ) -> None:
        check_integer("processes", processes, 1)
        self.scratch, self.processes, self.block = scratch, processes, block
        self._given = executor
        self._own: ProcessPoolExecutor | None = None
        self._jobs = 0

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._own is not None:
            self._own.shutdown(wait=True, cancel_futures=True)
            self._own = None

    def _executor(self) -> Executor:
        if self._given is not None:
            return self._given
        if self._own is None:
            context = multiprocessing.get_context("spawn")
            self._own = ProcessPoolExecutor(
                self.processes, mp_context=context, initializer=_prepare
            )
        return self._own

    def __call__(self, pack: Pack, job: Job) -> Any:
        """Run a job on all shards and return the sum of its statistics."""
        self._jobs += 1
        file = job_file(self.scratch, str(self._jobs))
        write_values(file, job)
        try:
            return self._run(pack, file, package_of(job.model))
        finally:
            file.unlink(missing_ok=True)

    def _run(self, pack: Pack, file: Path, package: str) -> Any:
        """Run a job on all blocks.

        After a death, blocks run one at a time, so that the next death is that of a known shard.
        """
        n_shards = len(pack.summary.shards)
        size = min(self.block, n_shards)
        waiting = list(range(0, n_shards, size))
        tree, deaths, alone = SumTree(n_shards), Counter[int](), False
        while waiting:
            running: dict[Future[Any], int] = {}
            try:
                for first in waiting[:1] if alone else list(waiting):
                    task = (str(pack.path), pack.digest, first, size, str(file), package)
                    running[self._executor().submit(run_task, *task)] = first
                unfinished = set(running)
                while unfinished:
                    done, unfinished = wait(unfinished, return_when=FIRST_COMPLETED)
                    for future in done:
                        tree.put(running[future], size, future.result())
                        waiting.remove(running[future])
            except BrokenExecutor:
                if self._given is not None:
                    raise DataError(
                        "The executor broke while it processed shards; start the fit again with "
                        "resume."
                    ) from None
                self._close()
                if alone:
                    deaths[waiting[0]] += 1
                    _give_up(pack, waiting[0], deaths)
                alone = True
            except BaseException:
                for future in running:
                    future.cancel()
                raise
        return tree.total


def _give_up(pack: Pack, first: int, deaths: Counter[int]) -> None:
    """Raise an error if processes died too often on a shard; the first death was among others."""
    if deaths[first] + 1 < MOST_DEATHS:
        return
    info = pack.summary.shards[first]
    stored = sum(size for size, _ in info.files.values())
    raise DataError(
        f"A process died {MOST_DEATHS} times on shard {info.name} of {pack.path} "
        f"({info.n_annotations} labels, {readable_bytes(stored)}), probably for lack of memory; "
        "use fewer processes, or pack the labels into more shards."
    )


class SumTree:
    """Sums of blocks of shards, added along a binary tree as soon as two neighbours are there.

    Parameters
    ----------
    size : int
        Number of shards, a power of two.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._parts: dict[tuple[int, int], Any] = {}

    def put(self, first: int, size: int, value: Any) -> None:
        """Add the sum of a block."""
        while size < self.size:
            other = first ^ size
            if (other, size) not in self._parts:
                break
            neighbour = self._parts.pop((other, size))
            value = add(value, neighbour) if first < other else add(neighbour, value)
            first, size = min(first, other), 2 * size
        self._parts[first, size] = value

    @property
    def total(self) -> Any:
        """The sum over all shards."""
        return self._parts[0, self.size]
