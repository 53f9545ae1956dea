"""Packing: annotations of any files as a pack, in two passes and bounded memory."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from wisecrowd._version import __version__
from wisecrowd.core.duplicates import DUPLICATES, are_many
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.lookalike_ids import warn_of_lookalikes
from wisecrowd.core.kinds import LABELS
from wisecrowd.core.memory_check import readable_bytes
from wisecrowd.core.value_columns import require_spread
from wisecrowd.io.formats import AUTO, Request
from wisecrowd.io.interrupts import kept_interrupts
from wisecrowd.io.limits import limits
from wisecrowd.io.misreadings import (
    MANY,
    MisreadError,
    doubt_counts,
    question,
    refuse_doubts,
    worker_per_task,
)
from wisecrowd.io.pack_buckets import Distributor
from wisecrowd.io.pack_plan import shard_plan
from wisecrowd.io.pack_progress import Progress, begin, listed_writes, remove_rest
from wisecrowd.io.pack_refusals import sentences
from wisecrowd.io.pack_shards import ShardPlan, ShardSums, write_shard
from wisecrowd.io.read_options import ReadOptions, takes_read_options
from wisecrowd.io.sources import PathLike, Source, find_sources
from wisecrowd.io.tables import request_of
from wisecrowd.kinds import several_labels
from wisecrowd.packs.kind import is_packable, packable_kinds, packed_kind
from wisecrowd.packs.pack import SUMMARY, Pack, facts_of, read_array, write_array, write_ids
from wisecrowd.packs.summary import (
    ITEMS,
    TEXT,
    WORKER_TOTALS,
    WORKERS,
    PackSummary,
    ShardInfo,
    summary_text,
)
from wisecrowd.storage.atomic import atomic_write, clear_room_errors
from wisecrowd.storage.work_folder import only_writer

BUCKET_ROWS = 1 << 21  # rows of a bucket, estimated before reading
MOST_BUCKETS, LEAST_BUCKETS = 256, 16
MOST_SHARDS = 1 << 14
BYTES_PER_ROW = 40  # disk space of buckets and pack together
_TEXT_ROW = 20  # bytes of a row of text, to estimate the rows of a file
PATTERNS = {"auto": None, "always": True, "never": False}
_TOTALS = "totals-{}.npy"


@takes_read_options
def pack(
    path: PathLike | Iterable[PathLike],
    output: PathLike,
    format: str = AUTO,
    *,
    shards: int | str = "auto",
    patterns: str = "auto",
    gold: Mapping[Any, Any] | None = None,
    max_refused: int = 0,
    verify: bool = False,
    report: Callable[[str], None] = lambda text: None,
    **reading: Any,
) -> Pack:
    r"""Write annotations of any readable files as a pack: a folder that engines read by shards.

    Memory does not grow with the number of annotations, only with that of the workers. The content
    depends neither on the order of rows nor on how they are split into files, unless repeated
    labels without timestamps are resolved by their order. An interrupted run continues when it is
    started again with the same files and options.

    Parameters
    ----------
    path, format
        As for ``wisecrowd.read``.
    output : path
        The folder to write.
    shards : "auto" or int
        Number of shards, a power of two; by default one for 2^24 rows, and at least 16.
    patterns : {"auto", "always", "never"}
        Whether tasks with the same labels share one row; "auto" looks at a sample of tasks.
    gold : mapping of task to class or number, optional
        Known classes or numbers.
    max_refused : int
        Rows that cannot be read and may be left out: without task, worker or label, or with an
        unusable weight or timestamp. They are counted by reason, with five examples each, in the
        notes. By default the first such row is an error.
    verify : bool
        Compare the digests of all files at the end.
    report : callable
        Receives the name of each step.
    **reading
        Other options of ``wisecrowd.read``; ``type`` is "labels", "ordered", "numbers" or "pairs",
        and columns are task, worker, label, weight and timestamp, of pairs also left and right.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("task,worker,label\n1,ann,cat\n1,bob,dog\n2,ann,cat\n")
    >>> packed = pack(folder / "a.csv", folder / "crowd.pack")
    >>> packed.summary.n_annotations, packed.summary.classes, len(packed.summary.shards)
    (3, ['cat', 'dog'], 16)
    """
    asked = ReadOptions.of(format=format, **reading)
    abstain, kinds = asked.abstain, asked.kinds
    options: dict[str, Any] = {
        "shards": shards, "patterns": patterns, "duplicates": asked.duplicates, "type": asked.type,
        "classes": None if asked.classes is None else list(asked.classes),
        "abstain": [abstain] if isinstance(abstain, str) else list(abstain),
        "n_gold": len(gold or {}), "format": format, "header": asked.header,
        "kinds": None if kinds is None else list(kinds),
        "exclude_workers": list(asked.exclude_workers), "max_refused": max_refused,
        "columns": {name: column for name, column in asked.roles.items() if column is not None},
    }  # fmt: skip
    _check_options(options)
    request = request_of(asked)
    request.kind.container.reading_options(
        classes=asked.classes, abstain=tuple(options["abstain"]), type=request.kind.name
    )
    sources, folder = find_sources(path), Path(output)
    with only_writer(folder), limits(rows=2**62, bytes=2**62), clear_room_errors(folder):
        is_new = not folder.exists()
        progress = _begin(sources, folder, options)
        if progress is not None:  # else it was killed after its last step
            with (
                _removed_if_refused(progress, is_new),
                listed_writes(folder),
                kept_interrupts() as check,
            ):
                _require_disk(progress, sources)
                _distribute(progress, sources, request, format, options, report, check)
                plan = shard_plan(progress, options, gold)
                _write_shards(progress, plan, PATTERNS[patterns], report, check)
                _question_workers(progress, plan, request, sources, format)
                _finish(progress, plan, options, gold)
    if verify:
        report("verifying")
    return Pack(folder, verify=verify)


def _check_options(options: dict[str, Any]) -> None:
    shards = options["shards"]
    if options["patterns"] not in PATTERNS:
        raise ParameterError(
            f"patterns is {options['patterns']!r}; choose one of {', '.join(PATTERNS)}."
        )
    if options["type"] is not None and not is_packable(options["type"]):
        raise ParameterError(
            f"type is {options['type']!r}, and a pack holds classes, numbers or pairs; give one of "
            f"{', '.join(packable_kinds())}, or use the files themselves."
        )
    if options["duplicates"] not in DUPLICATES:
        raise ParameterError(
            f"duplicates is {options['duplicates']!r}; choose one of {', '.join(DUPLICATES)}."
        )
    if shards != "auto" and not (
        isinstance(shards, int) and 1 <= shards <= MOST_SHARDS and shards & (shards - 1) == 0
    ):
        raise ParameterError(
            f"shards is {shards!r}; give auto or a power of two up to {MOST_SHARDS}."
        )
    if not isinstance(options["max_refused"], int) or options["max_refused"] < 0:
        raise ParameterError(
            f"max_refused is {options['max_refused']!r}; give a number of rows, 0 or more."
        )
    for name in options["columns"]:
        if name not in ("task", "worker", "label", "weight", "timestamp", "left", "right"):
            raise ParameterError(f"A pack has no column {name!r}; leave it out.")


# ------------------------------------------------------------------------------------- first pass


def _begin(sources: list[Source], folder: Path, options: dict[str, Any]) -> Progress | None:
    files = [_facts(source) for source in sources]
    n_rows = sum(_estimated_rows(source) for source in sources)
    wanted = -(-n_rows // BUCKET_ROWS)
    n_buckets = min(MOST_BUCKETS, max(LEAST_BUCKETS, 1 << max(0, wanted - 1).bit_length()))
    return begin(folder, {"files": files, "options": options}, n_buckets)


@contextmanager
def _removed_if_refused(progress: Progress, is_new: bool) -> Iterator[None]:
    """Remove the folder if files or options are refused and nothing of it can be continued."""
    try:
        yield
    except (DataError, ParameterError) as error:
        if isinstance(error, ParameterError | MisreadError) or not (
            progress.inputs or progress.shards
        ):
            progress.remove()
            if is_new:
                with suppress(OSError):  # not empty: somebody else put something there
                    progress.folder.rmdir()
        raise


def _facts(source: Source) -> list[Any]:
    """Return name, size and time of a file, by which an interrupted run recognises it."""
    if source.path is None or not source.path.is_file():
        return [source.name, None, None]
    facts = source.path.stat()
    return [source.name, facts.st_size, facts.st_mtime_ns]


def _estimated_rows(source: Source) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if source.path is None or not source.path.is_file():
        return BUCKET_ROWS
    if source.suffix in (".parquet", ".pq"):
        try:
            return int(pq.ParquetFile(source.path).metadata.num_rows)
        except (pa.ArrowException, OSError):
            return 0  # reading it says what is wrong
    return source.path.stat().st_size // _TEXT_ROW


def _require_disk(progress: Progress, sources: list[Source]) -> None:
    if progress.shards:
        return
    needed = BYTES_PER_ROW * sum(_estimated_rows(source) for source in sources)
    folder = progress.folder
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise DataError(
            f"Packing needs about {readable_bytes(needed)} of disk space, and {folder} has "
            f"{readable_bytes(free)}; free some space or choose another place."
        )


def _distribute(
    progress: Progress,
    sources: list[Source],
    request: Request,
    format: str,
    options: dict[str, Any],
    report: Callable[[str], None],
    check: Callable[[], None],
) -> None:
    """Read the files that are not finished; ``check`` raises an interrupt that was swallowed."""
    done = {one["name"] for one in progress.inputs}
    waiting = [source for source in sources if source.name not in done]
    if not waiting:
        return
    request.notes.extend(progress.notes)
    declared = options["type"] is not None or options["classes"] is not None
    distributor = Distributor(
        progress.buckets, progress.n_buckets, request, format, tuple(options["abstain"]), declared,
        progress.coding, options["max_refused"], check,
    )  # fmt: skip
    for source in waiting:
        report(f"reading {source.name}")
        distributor.add(source)
        size, digest = (None, None)
        if source.path is not None and source.path.is_file():
            size, digest = facts_of(source.path)
        progress.inputs.append({"name": source.name, "bytes": size, "sha256": digest})
        progress.notes = [*request.inventory.sentences(), *request.notes]
        progress.save()
    if progress.coding.n_rows == progress.coding.n_abstentions:
        raise DataError("There are no annotations: the files have no rows with a label.")
    coding = progress.coding
    doubt_counts(coding.n_rows, list(coding.workers.code_of), list(coding.labels.code_of), request)
    for about_answers in (False, True):
        refuse_doubts(request, sources, format, about_answers=about_answers)
    progress.notes = [*request.inventory.sentences(), *request.notes]


# ------------------------------------------------------------------------------------ second pass


def _write_shards(
    progress: Progress,
    plan: ShardPlan,
    patterns: bool | None,
    report: Callable[[str], None],
    check: Callable[[], None],
) -> None:
    if not progress.shards:
        progress.patterns = patterns
    for number in range(len(progress.shards), plan.n_shards):
        check()
        sums, progress.patterns, totals = write_shard(plan, number, progress.patterns, report)
        write_array(progress.buckets / _TOTALS.format(number), totals)
        progress.shards.append(sums)
        progress.save()


def _question_workers(
    progress: Progress, plan: ShardPlan, request: Request, sources: list[Source], format: str
) -> None:
    """Refuse workers with one task each, which is known when all shards are written."""
    n_tasks = sum(part.info["n_tasks"] for part in progress.shards)
    n_annotations = sum(part.info["n_annotations"] for part in progress.shards)
    if min(n_tasks, len(plan.workers)) >= MANY and len(plan.workers) == n_annotations:
        question(worker_per_task(n_annotations, request), request)
        refuse_doubts(request, sources, format, about_answers=False)
        progress.notes = [*request.inventory.sentences(), *request.notes]


def _finish(progress: Progress, plan: ShardPlan, options: dict[str, Any], gold: Any) -> None:
    """Write what depends on all shards, ``pack.json`` last, and remove the buckets."""
    import pyarrow as pa

    folder, parts = progress.folder, progress.shards
    notes = [*progress.notes, *_notes_on_repeats(parts, options), *_notes_on_absent(progress)]
    values = plan.classes if plan.pairs is None else plan.pairs.items
    notes += warn_of_lookalikes(np.empty(0, object), plan.workers, values)
    if gold is not None and sum(part.n_gold for part in parts) < len(gold):
        raise DataError(
            f"{len(gold) - sum(part.n_gold for part in parts)} tasks of the gold have no row in "
            "the labels; remove them from the gold or add the tasks."
        )
    kind = pa.large_string() if progress.coding.worker_type == TEXT else pa.int64()
    write_ids(folder / WORKERS, pa.array(plan.workers, kind))
    totals = np.zeros(len(plan.workers))
    for number in range(len(parts)):
        totals += read_array(progress.buckets / _TOTALS.format(number))
    write_array(folder / WORKER_TOTALS, totals)
    own = [WORKERS, WORKER_TOTALS]
    if plan.pairs is not None:
        kind = pa.large_string() if progress.coding.pairs.item_type == TEXT else pa.int64()
        write_ids(folder / ITEMS, pa.array(plan.pairs.items, kind))
        own.append(ITEMS)
    ends = [end for part in parts for end in part.value_range]
    if ends:
        require_spread(min(ends), max(ends), "value")
    sizes = [size for part in parts for size in part.labels_per_task]
    class_totals = np.sum([part.class_totals for part in parts], axis=0)
    outcomes = [part.outcome_totals for part in parts if part.outcome_totals]
    summary = PackSummary(
        n_tasks=sum(part.info["n_tasks"] for part in parts),
        n_workers=len(plan.workers),
        n_annotations=sum(part.info["n_annotations"] for part in parts),
        classes=plan.classes.tolist(),
        ordered=packed_kind(options["type"] or LABELS).ordered,
        task_type=plan.task_type,
        worker_type=progress.coding.worker_type or TEXT,
        n_labelled=sum(part.n_labelled for part in parts),
        n_telling=sum(part.n_telling for part in parts),
        n_gold=sum(part.n_gold for part in parts),
        class_totals=class_totals.tolist(),
        labels_per_task=[min(sizes), max(sizes)],
        patterns=bool(progress.patterns),
        shards=[ShardInfo(**part.info) for part in parts],
        files={name: facts_of(folder / name) for name in own},
        options=options,
        notes=notes,
        inputs=progress.inputs,
        kind=plan.kind,
        has_tasks=not plan.packed.about_items or "task" in (progress.coding.columns or []),
        value_range=[min(ends), max(ends)] if ends else [],
        outcome_totals=np.sum(outcomes, axis=0).tolist() if outcomes else [],
        wisecrowd=__version__,
    )
    with atomic_write(folder / SUMMARY) as file:
        file.write(summary_text(summary))
    remove_rest(folder)


def _notes_on_repeats(parts: list[ShardSums], options: dict[str, Any]) -> list[str]:
    pairs, different = sum(p.n_pairs for p in parts), sum(p.n_different for p in parts)
    dropped = sum(p.n_dropped for p in parts)
    if options["duplicates"] == "auto" and are_many(different, pairs):
        raise several_labels(different, pairs, "")
    if not dropped:
        return []
    return [f"{dropped} annotations repeat a (task, worker) pair: the last one counts"]


def _notes_on_absent(progress: Progress) -> list[str]:
    count = progress.coding.n_abstentions
    absent = [f"{count} abstentions count as no label"] if count else []
    return absent + sentences(progress.coding.refused)
