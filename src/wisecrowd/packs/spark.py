"""Engine that has Spark run the steps on the shards of a pack.

Spark is the scheduler only. It moves the numbers of blocks of shards and the name of a file with
model and parameters; workers read the pack themselves. Retries and speculative attempts are
Spark's, and the sums have the same bits as those of any other engine of packs.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from wisecrowd._version import __version__
from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import (
    DataError,
    MissingDependencyError,
    ParameterError,
    WisecrowdError,
)
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import check_integer
from wisecrowd.core.registry import kebab_case
from wisecrowd.engines.threads import get_threads
from wisecrowd.packs.files import Job, Runner, package_of, scratch_beside
from wisecrowd.packs.fit import fit_pack
from wisecrowd.packs.pack import Pack
from wisecrowd.packs.pool import SumTree, job_file, remove_jobs
from wisecrowd.packs.spark_step import (
    SCHEMA,
    BlockTask,
    how_to_ship,
    parts_of,
    run_rows,
    statistics_of,
)  # fmt: skip
from wisecrowd.packs.values import (
    digest_of_values,
    read_values,
    values_from_bytes,
    write_values,
)  # fmt: skip
from wisecrowd.storage.work_folder import note_temporary

TASKS_PER_CORE = 2  # at least; the next power of two is taken
CORES = 16  # if Spark does not say how many there are
_SHOWN = ("task", "label", "confidence")


def spark(
    session: Any,
    pack: str | os.PathLike[str] | Pack,
    scratch: str | os.PathLike[str] | None = None,
    *,
    tasks: int | None = None,
) -> SparkEngine:
    """Return an engine that has Spark fit methods to a pack.

    Use it as the data of ``wisecrowd.aggregate`` or as the ``engine`` of ``wisecrowd.fit_pack``.
    The session is never stopped.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
        A session of Spark 4 or later, also one of Spark Connect.
    pack : path or Pack
        The driver and all workers must see it under the same path, and output and scratch, too.
    scratch : path, optional
        Folder for parameters, statistics and progress; by default beside output or pack.
    tasks : int, optional
        Most tasks per pass; rounded down to a power of two. By default two to four per core.
        It does not change results.
    """
    if not hasattr(session, "range"):
        raise ParameterError(
            f"session is a {type(session).__name__}; give a SparkSession, such as "
            "SparkSession.builder.getOrCreate()."
        )
    if tasks is not None:
        check_integer("tasks", tasks, 1)
    opened = pack if isinstance(pack, Pack) else Pack(pack)
    return SparkEngine(session, opened, None if scratch is None else Path(scratch), tasks)


@dataclass(frozen=True, eq=False)
class SparkEngine:
    """A pack, and the Spark session that fits methods to it; made by :func:`spark`.

    Attributes
    ----------
    session : SparkSession
    pack : Pack
    scratch : Path or None
    tasks : int or None
    """

    session: Any = field(repr=False)
    pack: Pack
    scratch: Path | None = None
    tasks: int | None = None

    @contextmanager
    def runner(self, scratch: Path) -> Iterator[Runner]:
        """Give a runner of jobs that keeps its files in a folder."""
        try:
            yield _SparkRunner(self.session, scratch.absolute(), self._n_tasks)
        finally:
            remove_jobs(scratch)

    @property
    def _n_tasks(self) -> int:
        most = self.tasks or 2 * TASKS_PER_CORE * _cores(self.session) - 1
        return min(1 << (most.bit_length() - 1), len(self.pack.summary.shards))

    def fit_answers(self, method: Aggregator) -> Any:
        """Fit a method and return the answers as a Spark frame: of classes task, label, confidence.

        The answers are parquet files in the scratch folder. The same call continues a fit that
        was interrupted.
        """
        name = kebab_case(type(method).__name__)
        try:
            key = (__version__, self.pack.digest, name, method.get_params(deep=False))
            mark = digest_of_values(key)[:12]
        except WisecrowdError:  # a parameter without stored form, such as a random generator
            mark = secrets.token_hex(6)
        folder = scratch_beside(self.pack.path) if self.scratch is None else self.scratch
        folder.mkdir(parents=True, exist_ok=True)
        place = (folder / f"{name}-{mark}").absolute()
        fit_pack(method, self.pack, place, engine=self, scratch=folder, resume=True)
        with without_pandas_warning():
            answers = self.session.read.parquet(f"file://{place}")
            return answers.select(*_SHOWN) if self.pack.kind.of_classes else answers


class _SparkRunner:
    """Runs jobs on all shards of a pack.

    Parameters
    ----------
    session : SparkSession
    scratch : Path
        Folder that all workers see.
    n_tasks : int
        Number of blocks, a power of two.
    """

    def __init__(self, session: Any, scratch: Path, n_tasks: int) -> None:
        self.session, self.scratch, self.n_tasks = session, scratch, n_tasks
        self._run, self._jobs = secrets.token_hex(4), 0  # workers of a lost driver write elsewhere

    def __call__(self, pack: Pack, job: Job) -> Any:
        """Run a job on all shards and return the sum of its statistics."""
        self._jobs += 1
        file = job_file(self.scratch, f"{self._run}-{self._jobs}")
        parts = _attempts_folder(job)
        n_shards = len(pack.summary.shards)
        task = BlockTask(
            __version__, str(pack.path.absolute()), pack.digest, n_shards // self.n_tasks,
            str(file), package_of(job.model), None if parts is None else str(parts),
        )  # fmt: skip
        write_values(file, job)
        try:
            if parts is not None:
                note_temporary(parts)
                parts.mkdir()
            tree = SumTree(n_shards)
            for row in self._rows(task):
                tree.put(row.first, task.size, _statistics(row, task))
                if job.parts is not None and job.parts.folder is not None and parts is not None:
                    _accept(parts_of(str(parts), row.first, row.attempt), Path(job.parts.folder))
            return tree.total
        finally:
            for left in self.scratch.glob(f"{file.name}*"):
                left.unlink(missing_ok=True)
            if parts is not None:
                shutil.rmtree(parts, ignore_errors=True)

    def _rows(self, task: BlockTask) -> list[Any]:
        """Return a row per block; Spark accepts one attempt at each."""
        try:
            with without_pandas_warning():
                blocks = self.session.range(0, self.n_tasks, 1, self.n_tasks)
                step = partial(run_rows, tuple(task))
                rows: list[Any] = blocks.mapInArrow(step, SCHEMA).collect()
        except Exception as error:
            raise DataError(_reason(str(error))) from error
        for row in rows:
            if row.error is not None:
                raise DataError(row.error)
        return rows


def _attempts_folder(job: Job) -> Path | None:
    """Return a folder beside that of the answers, so that no worker writes into the latter."""
    if job.parts is None or job.parts.folder is None:
        return None
    return Path(f"{job.parts.folder}.attempts")


def _statistics(row: Any, task: BlockTask) -> Any:
    if row.content is not None:
        return values_from_bytes(bytes(row.content), task.package)
    file = statistics_of(task.job, row.first, row.attempt)
    return read_values(file, task.package, verify=True)


def _accept(attempt: Path, folder: Path) -> None:
    """Move the answers of an accepted attempt to the others."""
    for part in attempt.iterdir():
        os.replace(part, folder / part.name)


def _cores(session: Any) -> int:
    """Return the cores of the cluster; a session of Spark Connect has no context to ask."""
    context = getattr(session, "sparkContext", None)
    return CORES if context is None else max(1, int(context.defaultParallelism))


def _reason(text: str) -> str:
    """Return why Spark gave up, in one sentence."""
    missing = re.search(r"No module named '(\w+)", text)
    if missing:
        return f"The workers of Spark have no {missing[1]}; {how_to_ship(__version__)}."
    raised = re.findall(r"^(?:[a-z_]\w*\.)*([A-Z]\w*(?:Error|Exception|Interrupt)(?:: .*)?)$",
                        text, re.MULTILINE)  # fmt: skip
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    words = (raised or lines or ["no reason given"])[-1 if raised else 0].rstrip(".")
    again = for_reader("start the fit again with resume=True", "add --resume to continue")
    return f"Spark gave up a pass ({words[:300]}); see its log, then {again}."


OLDEST_JAVA = 17
# pyspark needs pandas to be there and says so; mapInArrow uses nothing of it.
_PANDAS = "PySpark does not yet fully support pandas"
_HOW = f"install Java {OLDEST_JAVA} or newer, or set JAVA_HOME"


def get_session() -> Any:
    """Return the running Spark session, or start one.

    Without spark-submit or another configuration, Spark runs on this machine and tries every task
    up to four times, as clusters do.
    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        raise MissingDependencyError(
            "The engine spark needs pyspark and pandas; install them with pip install "
            "'wisecrowd[spark]'."
        ) from None
    with without_pandas_warning():
        return _started(SparkSession.builder)


@contextmanager
def without_pandas_warning() -> Iterator[None]:
    """Hide the one warning of pyspark about the version of pandas."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", _PANDAS, FutureWarning)
        yield


def _started(builder: Any) -> Any:
    if "PYSPARK_GATEWAY_PORT" in os.environ or "SPARK_REMOTE" in os.environ:
        return builder.getOrCreate()  # started by spark-submit, or a server elsewhere
    check_java()
    if not {"MASTER", "PYSPARK_SUBMIT_ARGS"} & set(os.environ):
        builder = builder.master(f"local[{get_threads()},4]")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.ui.enabled", "false")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        return builder.getOrCreate()
    except Exception as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise DataError(f"Spark does not start ({reason}); see its output above.") from error


def check_java() -> None:
    """Refuse to start Spark without a Java that it can use."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if java is None:
        where = f"JAVA_HOME ({home})" if home else "PATH"
        raise DataError(f"Spark needs Java, and {where} has none; {_HOW}.")
    try:
        found = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DataError(f"{java} does not run ({error}); {_HOW}.") from None
    version = java_version(found.stderr + found.stdout)
    if version is None:
        raise DataError(f"{java} does not tell its version; {_HOW}.")
    if version < OLDEST_JAVA:
        raise DataError(f"Spark needs Java {OLDEST_JAVA}, and {java} is Java {version}; {_HOW}.")


def java_version(text: str) -> int | None:
    """Return the major version that ``java -version`` prints.

    Examples
    --------
    >>> java_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> java_version('java version "1.8.0_202"')
    8
    """
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None
