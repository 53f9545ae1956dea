"""Fits to packs: answers as files, worker quality in memory.

A fit does not start from one to a part of the shards: at 10^6 and 10^7 labels this saved one or two
of 7 to 11 passes, and cost as much.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.answers import MOST_ALONE, one_worker_finding
from wisecrowd.core.estimator import exclusive_fit
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.findings import warn_of
from wisecrowd.core.footprint import DENSE_LIMIT
from wisecrowd.core.kinds import LABELS, get_kind
from wisecrowd.core.messages.option_spelling import for_reader, option
from wisecrowd.core.parameter_checks import as_generator, check_choice
from wisecrowd.core.problem import Problem
from wisecrowd.core.registry import get_method, kebab_case, method_names
from wisecrowd.core.result import Fit
from wisecrowd.engines.threads import get_threads
from wisecrowd.packs.answers import AnswerParts, PartPlan, is_alone, only_name, part_name
from wisecrowd.packs.files import (
    JOURNAL_FILES,
    FilesEngine,
    Journal,
    Runner,
    run_here,
    scratch_beside,
)
from wisecrowd.packs.kind import is_packable, packable_kinds, packed_kind
from wisecrowd.packs.pack import Pack
from wisecrowd.packs.pool import JOB, Pool, remove_jobs
from wisecrowd.storage.atomic import atomic_directory
from wisecrowd.storage.manifest import is_own_output
from wisecrowd.storage.work_folder import WorkFolder, listed_temporaries

ENGINES = ("files", "pool")
UNFINISHED = "unfinished"  # list of the outputs that are being written
_PART = re.compile(r"part-\d{5}\.parquet")
# Files that fits write into the folder of their progress.
PROGRESS_FILES = re.compile(rf"passes/{JOURNAL_FILES.pattern}|\.?{JOB}-.*|{UNFINISHED}")


class PackEngine(Protocol):
    """An engine over a pack, such as that of ``wisecrowd.engines.spark``."""

    @property
    def pack(self) -> Pack:
        """The pack that it reads."""

    @property
    def scratch(self) -> Path | None:
        """Folder for progress; None is beside output or pack."""

    def runner(self, scratch: Path) -> AbstractContextManager[Runner]:
        """Give a runner of jobs that keeps its files in a folder."""


@dataclass(frozen=True, eq=False)
class PackFit:
    """The result of a fit to a pack.

    Attributes
    ----------
    method : str
    pack : Pack
    fit : Fit
        Parameters, worker quality and findings; the answers are in the output folder.
    n_ties : int
    n_resumed : int
        Passes that were taken from an interrupted run.
    unchecked : tuple of str
        The checks that were not made at this size.
    """

    method: str
    pack: Pack
    fit: Fit
    n_ties: int
    n_resumed: int
    unchecked: tuple[str, ...] = ()

    def worker_columns(self) -> dict[str, NDArray[Any]]:
        """Return one row per worker: total weight of the labels, and the worker's quality."""
        counts = np.array(self.pack.worker_totals)
        return {
            "worker": self.pack.workers,
            "n_labels": counts.astype(np.int64) if (counts == counts.round()).all() else counts,
            **get_kind(self.pack.summary.kind).answers.worker_columns(self._learned()),
        }

    def item_columns(self) -> dict[str, NDArray[Any]]:
        """Return one row per item of a pack of pairs: score, interval, rank; the best first."""
        table = self.pack.kind.item_table(self._learned())
        if table is None:
            raise DataError(f"{self.pack.path} has no items; it holds {self.pack.summary.kind}.")
        return table

    def _learned(self) -> dict[str, Any]:
        """Return the results under the names that a fit in memory publishes."""
        learned = {f"{name}_": value for name, value in self.fit.extra.items()}
        if self.fit.worker_accuracy is not None:
            learned["worker_accuracy_"] = self.fit.worker_accuracy
            learned["worker_accuracy_error_"] = self.fit.worker_accuracy_error
        return learned | self.pack.kind.learned(self.pack, self.fit)


def shardable_methods(kind: str = LABELS) -> list[str]:
    """Return the names of the methods that fit a pack of some kind shard by shard."""
    return [name for name in method_names(type=kind) if get_method(name).promises.shardable]


def fit_pack(
    method: Aggregator,
    pack: str | os.PathLike[str] | Pack,
    output: str | os.PathLike[str] | None = None,
    *,
    engine: str | PackEngine = "files",
    processes: int | None = None,
    executor: Executor | None = None,
    soft: bool = False,
    scratch: str | os.PathLike[str] | None = None,
    resume: bool = False,
) -> PackFit:
    """Fit a method to a pack, shard by shard, and write the answers as parquet files.

    The same model and kernels run as in memory. Results have the same bits for every engine and
    number of processes, and agree with those in memory up to rounding. The common checks of a fit
    look at sums and at a sample of the tasks. After every pass its statistics are kept, so that an
    interrupted fit continues.

    Parameters
    ----------
    method : Aggregator
        A method with the tag ``shardable``; it is not changed.
    pack : path or Pack
    output : path, optional
        Folder for the answers, one file per shard with the columns task, label, confidence, tie
        and n_labels; of numbers task, value, low, high and n_labels. Pairs give one file with a row
        per item.
    engine : {"files", "pool"} or engine
        Read one shard at a time, or several in as many processes; or what
        ``wisecrowd.engines.spark`` returns.
    processes : int, optional
        Number of processes of the pool; by default that of the threads.
    executor : concurrent.futures.Executor, optional
        Runs the steps instead of processes of our own, such as that of a cluster.
    soft : bool
        Add a column ``p_CLASS`` for every class; for classes only.
    scratch : path, optional
        Folder in which the progress of the fit is kept, in a folder of its own that is removed at
        the end; by default that of the output. Nothing else in it is touched.
    resume : bool
        Continue an interrupted fit.

    Returns
    -------
    PackFit
    """
    if isinstance(engine, str):
        check_choice("engine", engine, ENGINES)
    name = kebab_case(type(method).__name__)
    opened = pack if isinstance(pack, Pack) else Pack(pack)
    _check_method(method, name, opened, soft)
    method._validate_parameters()
    if opened.summary.patterns and not method.tags().repeatable:
        raise ParameterError(
            f"{name} has values of its own for every task, and tasks of {opened.path} with the "
            f"same labels share a row; pack the labels with {option('patterns', 'never')}."
        )
    if opened.summary.n_annotations == 0:
        raise DataError("There are no annotations to fit; pack files that have labels.")
    with ExitStack() as stack:
        stack.enter_context(exclusive_fit(method))
        if not isinstance(engine, str):
            scratch = _scratch_of(engine, opened, output, scratch)
        work, journal = stack.enter_context(_progress(output, scratch, opened, resume))
        place = work.absolute()
        run: Runner = run_here
        if not isinstance(engine, str):
            run = stack.enter_context(engine.runner(place))
        elif engine == "pool" or executor is not None:
            run = stack.enter_context(Pool(place, processes or get_threads(), executor))
        folder = None if output is None else stack.enter_context(_parts_folder(Path(output)))
        plan = PartPlan(None if folder is None else str(folder), soft)
        parts = AnswerParts(plan, _sparse_from(opened))
        crowd, prior = opened.kind.problem_of(opened, parts)
        opened.kind.check(method, crowd)
        rng = as_generator(getattr(method, "random_state", None))
        engine_of_files = FilesEngine(journal, run)
        problem: Problem[Any, Any] = Problem(crowd, prior, engine_of_files, None, rng)
        fit = _with_humility(method, opened, method._fit_pack(problem))
        fit = opened.kind.finished(fit, crowd)
        findings, unchecked = opened.kind.findings(crowd, problem, fit)
        fit = replace(fit, findings=(*fit.findings, *findings, *method._unfinished(fit)))
        found = PackFit(name, opened, fit, parts.n_ties, journal.n_taken, unchecked)
        if folder is not None and opened.kind.about_items:
            _write_items(folder, found)
    warn_of(found.fit.findings, stacklevel=2)
    return found


def _check_method(method: Aggregator, name: str, pack: Pack, soft: bool) -> None:
    """Refuse methods that cannot fit a pack, or not one of this kind."""
    kind = pack.summary.kind
    takes = packed_kind(method.takes).name if is_packable(method.takes) else method.takes
    able = ", ".join(shardable_methods(kind))
    if takes != kind:
        raise ParameterError(f"{name} takes {takes}, and {pack.path} holds {kind}; use {able}.")
    if not method.tags().shardable:
        raise ParameterError(
            f"{name} needs all labels in memory and cannot fit a pack by shards; use one of {able}."
        )
    if soft and not pack.kind.of_classes:
        raise ParameterError(
            f"{for_reader('soft=True', '--soft')} is for classes, and {pack.path} holds {kind}; "
            "leave it out."
        )


def _with_humility(method: Aggregator, pack: Pack, fit: Fit) -> Fit:
    """Return the fit with a finding if all labels are by one worker; answers are capped already."""
    if not is_alone(pack):
        return fit
    answers = method._kind().answers
    finding = one_worker_finding(only_name(pack), answers.alone)
    fit = pack.kind.capped(fit, MOST_ALONE)
    return replace(fit, findings=(*fit.findings, finding))


def _write_items(folder: Path, found: PackFit) -> None:
    """Write the ranking of a pack of pairs as the only part."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(found.item_columns()), folder / part_name(0), compression="zstd")


def _scratch_of(engine: PackEngine, pack: Pack, output: Any, scratch: Any) -> Any:
    """Return a folder for progress that the workers of an engine see."""
    if engine.pack.digest != pack.digest:
        raise ParameterError(
            f"The engine reads {engine.pack.path}, and the pack to fit is {pack.path}; make an "
            "engine for the latter."
        )
    place = engine.scratch if scratch is None else scratch
    return pack.path.parent if place is None and output is None else place


def _sparse_from(pack: Pack) -> NDArray[np.intp] | None:
    """Return the classes by frequency if the posterior of a shard would be too large."""
    if not pack.summary.classes:
        return None
    most = max(shard.n_rows for shard in pack.summary.shards) * len(pack.classes)
    totals = np.array(pack.summary.class_totals)
    return None if most <= DENSE_LIMIT else np.argsort(-totals, kind="stable")


def _work_place(output: Any, scratch: Any, pack: Pack) -> Path:
    """Return the folder for progress: in the scratch folder, or else beside the output."""
    if output is None:
        return Path(scratch) / f"{pack.path.name}.fit.scratch"
    beside = scratch_beside(Path(output))
    return beside if scratch is None else Path(scratch) / beside.name


@contextmanager
def _progress(
    output: Any, scratch: Any, pack: Pack, resume: bool
) -> Iterator[tuple[Path, Journal]]:
    """Give a folder for progress, and its journal.

    It is removed at the end, and kept after an interruption if a pass is finished.
    """
    if scratch is None and output is None:  # nothing to continue
        with TemporaryDirectory(prefix="wisecrowd-") as folder:
            yield Path(folder), Journal(Path(folder) / "passes", resume=resume)
        return
    remedy = for_reader("give another scratch folder", "give --scratch another folder")
    work = WorkFolder(_work_place(output, scratch, pack), PROGRESS_FILES, remedy)
    journal = None
    try:
        remove_jobs(work.path)
        journal = Journal(work.path / "passes", resume=resume)
        with listed_temporaries(work.path / UNFINISHED):
            yield work.path, journal
    except BaseException:
        if journal is None or journal.is_empty:
            work.remove()
        raise
    work.remove()


@contextmanager
def _parts_folder(output: Path) -> Iterator[Path]:
    """Give a folder that takes the place of the output at the end."""
    own = output.is_dir() and is_own_output(output)
    with atomic_directory(output, is_own_entry=lambda e: own or is_answer_part(e)) as folder:
        yield folder


def is_answer_part(entry: Path) -> bool:
    """Return whether a file has the name and the columns of answers of a fit to a pack."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not _PART.fullmatch(entry.name):
        return False
    try:
        found = set(pq.read_schema(entry).names)
    except (pa.ArrowException, OSError):
        return False
    return any(packed_kind(kind).answer_columns <= found for kind in packable_kinds())
