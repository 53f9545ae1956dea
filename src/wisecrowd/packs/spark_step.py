"""Step that Python workers of Spark run: a job on a block of shards.

A worker gets the number of a block and the name of a file with model and parameters. It returns one
row, in which statistics are a file or, if they are small, the content of such a file. Files have
the number of the attempt in their names. Results of an attempt that Spark does not accept are
therefore never read.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from wisecrowd._version import __version__
from wisecrowd.core.exceptions import DataError, WisecrowdError
from wisecrowd.engines.threads import set_threads
from wisecrowd.packs.files import Job, run_block
from wisecrowd.packs.pack import Pack
from wisecrowd.packs.values import read_values, values_to_bytes, write_values

INLINE = 1 << 18  # bytes of statistics that travel in the row
SCHEMA = "first long, attempt long, content binary, error string"


class BlockTask(NamedTuple):
    """What all blocks of a job have in common; only plain values, because Spark sends it.

    Attributes
    ----------
    version : str
        Version of wisecrowd on the driver.
    pack, digest : str
        The folder of the pack, and the digest that it must have.
    size : int
        Shards per block.
    job : str
        File with model, step and parameters; its name begins the names of statistics.
    package : str
        Package of the model besides wisecrowd.
    parts : str or None
        Folder in which attempts make their folders for answers.
    """

    version: str
    pack: str
    digest: str
    size: int
    job: str
    package: str
    parts: str | None


def run_rows(task: tuple[Any, ...], batches: Iterator[Any]) -> Iterator[Any]:
    """Run a job on the blocks whose numbers come in, and yield one row for each.

    An error of wisecrowd becomes a row: it would come again in every attempt.
    """
    import pyarrow as pa

    schema = pa.schema(
        [("first", pa.int64()), ("attempt", pa.int64()), ("content", pa.binary()),
         ("error", pa.string())]
    )  # fmt: skip
    for batch in batches:
        for number in batch.column(0).to_pylist():
            row: dict[str, Any] = {"first": None, "attempt": None, "content": None, "error": None}
            try:
                row |= _run(task, number)
            except WisecrowdError as error:
                row |= {"error": f"{error} (on {socket.gethostname()})"}
            yield pa.RecordBatch.from_pylist([row], schema)


def _run(given: tuple[Any, ...], number: int) -> dict[str, Any]:
    check_version(given[0])
    task = BlockTask(*given)
    attempt, first = attempt_number(), number * task.size
    set_threads(1)  # Spark runs a worker per core
    for place in (task.pack, task.job):
        if not os.path.exists(place):
            raise DataError(
                f"A worker of Spark does not see {place}; put pack, output and scratch on storage "
                "that the driver and all workers share under the same path."
            )
    pack = Pack(task.pack)
    if pack.digest != task.digest:
        raise DataError(f"{task.pack} is another pack than the one that the fit began with.")
    job: Job = read_values(Path(task.job), task.package)
    if task.parts is not None and job.parts is not None:
        folder = parts_of(task.parts, first, attempt)
        folder.mkdir()
        job = job._replace(parts=replace(job.parts, folder=str(folder)))
    statistics = run_block(pack, first, task.size, job)
    content = values_to_bytes(statistics, INLINE)
    if content is None:
        write_values(statistics_of(task.job, first, attempt), statistics)
    return {"first": first, "attempt": attempt, "content": content}


def attempt_number() -> int:
    """Return the number of this attempt at a task, which no other attempt of a session has."""
    from pyspark import TaskContext

    return int(TaskContext.get().taskAttemptId())


def statistics_of(job: str, first: int, attempt: int) -> Path:
    """Return the file with the statistics of an attempt at a block."""
    return Path(f"{job}-block-{first}-attempt-{attempt}")


def parts_of(parts: str, first: int, attempt: int) -> Path:
    """Return the folder with the answers of an attempt at a block."""
    return Path(parts) / f"block-{first}-attempt-{attempt}"


def check_version(driver: str) -> None:
    """Refuse to run if driver and worker have different versions of wisecrowd.

    Examples
    --------
    >>> check_version("0.0.1")
    Traceback (most recent call last):
    wisecrowd.core.exceptions.DataError: The driver has wisecrowd 0.0.1, and a worker of Spark ...
    """
    if driver != __version__:
        raise DataError(
            f"The driver has wisecrowd {driver}, and a worker of Spark has {__version__}; "
            f"{how_to_ship(driver)}."
        )


def how_to_ship(version: str) -> str:
    """Return what to do so that workers have a version of wisecrowd."""
    return (
        f"install wisecrowd {version} where PYSPARK_PYTHON of the workers finds it, or send the "
        "driver's environment along with spark-submit --archives"
    )
