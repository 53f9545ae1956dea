"""Fits to packs: answers as files, worker quality in memory."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.answers import ClassAnswers
from wisecrowd.core.concurrency import exclusive_fit
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.findings import warn_of
from wisecrowd.core.footprint import DENSE_LIMIT
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.parameter_checks import as_generator, check_choice
from wisecrowd.core.problem import Problem
from wisecrowd.core.registry import get_method, kebab_case, method_names
from wisecrowd.core.result import Fit
from wisecrowd.core.task_prior import TaskPrior
from wisecrowd.engines.answer_parts import AnswerParts, PartPlan
from wisecrowd.engines.files import FilesEngine, Runner, run_here, scratch_beside
from wisecrowd.engines.journal import Journal
from wisecrowd.engines.pack_checks import check_pack_fit
from wisecrowd.engines.packed_shard import PackedCrowd
from wisecrowd.engines.packs import Pack
from wisecrowd.engines.pool import Pool, remove_jobs
from wisecrowd.engines.threads import get_threads
from wisecrowd.storage.atomic import atomic_directory

ENGINES = ("files", "pool")
_PART = re.compile(r"part-\d{5}\.parquet")


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
        """Return one row per worker: total weight of the labels, accuracy with its interval."""
        learned = {
            "worker_accuracy_": self.fit.worker_accuracy,
            "worker_accuracy_error_": self.fit.worker_accuracy_error,
        }
        counts = np.array(self.pack.worker_totals)
        return {
            "worker": self.pack.workers,
            "n_labels": counts.astype(np.int64) if (counts == counts.round()).all() else counts,
            **ClassAnswers.worker_columns(learned),
        }


def shardable_methods() -> list[str]:
    """Return the names of the methods that fit a pack shard by shard."""
    return [name for name in method_names() if get_method(name).promises.shardable]


def fit_pack(
    method: Aggregator,
    pack: str | os.PathLike[str] | Pack,
    output: str | os.PathLike[str] | None = None,
    *,
    engine: str = "files",
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
        and n_labels.
    engine : {"files", "pool"}
        Read one shard at a time, or several in as many processes.
    processes : int, optional
        Number of processes of the pool; by default that of the threads.
    executor : concurrent.futures.Executor, optional
        Runs the steps instead of processes of our own, such as that of a cluster.
    soft : bool
        Add a column ``p_CLASS`` for every class.
    scratch : path, optional
        Folder for the progress of the fit; by default beside the output.
    resume : bool
        Continue an interrupted fit.

    Returns
    -------
    PackFit
    """
    check_choice("engine", engine, ENGINES)
    name = kebab_case(type(method).__name__)
    if not method.tags().shardable:
        raise ParameterError(
            f"{name} needs all labels in memory and cannot fit a pack by shards; use one of "
            f"{', '.join(shardable_methods())}."
        )
    method._validate_parameters()
    opened = pack if isinstance(pack, Pack) else Pack(pack)
    if opened.summary.patterns and not method.tags().repeatable:
        raise ParameterError(
            f"{name} has values of its own for every task, and tasks of {opened.path} with the "
            f"same labels share a row; pack the labels with {option('patterns', 'never')}."
        )
    if opened.summary.n_annotations == 0:
        raise DataError("There are no annotations to fit; pack files that have labels.")
    with ExitStack() as stack:
        stack.enter_context(exclusive_fit(method))
        place = stack.enter_context(_scratch(output, scratch))
        journal = Journal(place / "passes", resume=resume)
        run: Runner = run_here
        if engine == "pool" or executor is not None:
            run = stack.enter_context(Pool(place, processes or get_threads(), executor))
        folder = None if output is None else stack.enter_context(_parts_folder(Path(output)))
        plan = PartPlan(None if folder is None else str(folder), soft)
        parts = AnswerParts(plan, _sparse_from(opened))
        crowd = PackedCrowd(opened, parts)
        method._require_binary(crowd)
        prior = TaskPrior(np.zeros((1, crowd.n_classes)))
        rng = as_generator(getattr(method, "random_state", None))
        problem: Problem[Any, TaskPrior] = Problem(
            crowd, prior, FilesEngine(journal, run), None, rng
        )
        fit = method._fit(problem)
        checked = check_pack_fit(crowd, problem.cut(0), fit)
        findings = (*fit.findings, *checked.findings, *method._unfinished(fit))
        fit = replace(fit, findings=findings)
        n_ties, n_taken = parts.sums.n_ties, journal.n_taken
    warn_of(fit.findings, stacklevel=2)
    return PackFit(name, opened, fit, n_ties, n_taken, checked.unchecked)


def _sparse_from(pack: Pack) -> NDArray[np.intp] | None:
    """Return the classes by frequency if the posterior of a shard would be too large."""
    most = max(shard.n_rows for shard in pack.summary.shards) * len(pack.classes)
    totals = np.array(pack.summary.class_totals)
    return None if most <= DENSE_LIMIT else np.argsort(-totals, kind="stable")


@contextmanager
def _scratch(output: Any, scratch: Any) -> Iterator[Path]:
    """Give a folder for progress; it is removed at the end, and kept after an interruption."""
    if scratch is None and output is None:  # nothing to continue
        with TemporaryDirectory(prefix="wisecrowd-") as folder:
            yield Path(folder)
        return
    place = scratch_beside(Path(output)) if scratch is None else Path(scratch)
    place.mkdir(parents=True, exist_ok=True)
    remove_jobs(place)
    yield place
    shutil.rmtree(place / "passes", ignore_errors=True)
    if not any(place.iterdir()):
        place.rmdir()


@contextmanager
def _parts_folder(output: Path) -> Iterator[Path]:
    with atomic_directory(output, is_own_entry=lambda e: bool(_PART.fullmatch(e.name))) as folder:
        yield folder
