"""``wisecrowd aggregate`` of a pack, shard by shard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wisecrowd.core.exceptions import ParameterError

if TYPE_CHECKING:
    import typer

    from wisecrowd.cli.aggregate import AggregateOptions
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.aggregator import Aggregator
    from wisecrowd.engines.pack_fit import PackFit
    from wisecrowd.storage.manifest import Manifest

_TABLE = "table"  # folder for the parts of a table
_TABLE_FILES = re.compile(
    rf"{_TABLE}/(answers|\.wisecrowd-[0-9a-f]{{16}}\.tmp(\.attempts)?)/"
    r"(block-\d+-attempt-\d+/)?\.?part-\d{5}\.parquet(\.\d+\.tmp)?"
)
OTHERWISE = {"numbers": "gaussian-em", "pairs": "bradley-terry"}  # if the default cannot fit a pack


def aggregate_pack(context: typer.Context, pack: str, asked: AggregateOptions) -> None:
    """Fit a method to a pack by shards, and write answers, workers and manifests."""
    from wisecrowd.cli.inputs import describe_run
    from wisecrowd.cli.outputs import check_outputs, write_result
    from wisecrowd.cli.pack_options import is_folder
    from wisecrowd.cli.progress import working
    from wisecrowd.cli.replacing import note_written
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.engines.pack_fit import fit_pack, is_answer_part
    from wisecrowd.engines.threads import get_threads, set_threads
    from wisecrowd.io.packed_labels import refuse_options
    from wisecrowd.storage.atomic import together
    from wisecrowd.storage.manifest import write_manifest

    output = _output(asked)
    _refuse_others(asked)
    given = asked.reading.options()
    if given:
        refuse_options({given[0].removeprefix("--").replace("-", "_"): "VALUE"})
    folder = is_folder(output)
    outputs = [*([] if folder else [output]), *([asked.workers] if asked.workers else [])]
    own = {output: is_answer_part} if folder else {}
    check_outputs(
        outputs, [pack], folder=output if folder else None, overwrite=asked.overwrite, own=own
    )
    set_threads(asked.running.threads)
    with Notes(asked.running.quiet) as notes:
        method = _method(pack, asked, notes)
        with ExitStack() as stack:
            work = stack.enter_context(_work_folder(output, asked.packed.scratch))
            options: dict[str, Any] = {
                "engine": _engine(pack, asked), "processes": asked.packed.processes,
                "soft": asked.soft, "scratch": work, "resume": asked.packed.resume,
            }  # fmt: skip
            if folder:
                place = output
                stack.enter_context(together())
            else:
                place = str(work / _TABLE / "answers")
            with working(f"fitting {asked.method} to {pack}", notes):
                found = fit_pack(method, pack, place, **options)
            _note(found, notes)
            manifest = describe_run(
                context, [pack], method=found.method, parameters=method.get_params(deep=False),
                threads=get_threads(), facts=_facts(found),
            )  # fmt: skip
            with together():
                if folder:
                    write_manifest(output, manifest)
                    note_written(notes, output, f"wrote {output}")
                else:
                    _write_one(output, Path(place), asked.raw_csv, manifest, notes)
                if asked.workers:
                    table = found.worker_columns()
                    write_result(table, asked.workers, manifest, notes, raw=asked.raw_csv)


def _engine(pack: str, asked: AggregateOptions) -> Any:
    if asked.packed.engine == "spark":
        from wisecrowd.engines.spark_engine import spark
        from wisecrowd.engines.spark_session import get_session

        return spark(get_session(), pack)
    return "pool" if asked.packed.engine == "pool" else "files"


@contextmanager
def _work_folder(output: str, scratch: str | None) -> Iterator[Path]:
    """Give a folder for the progress of the fit and the parts of a table.

    The next run removes what a kill left, or continues it.
    """
    from wisecrowd.engines.files import scratch_beside
    from wisecrowd.engines.pack_fit import PROGRESS_FILES, UNFINISHED
    from wisecrowd.storage.work_folder import MARK, WorkFolder, listed_temporaries

    beside = scratch_beside(Path(output))
    place = beside if scratch is None else Path(scratch) / beside.name
    # The fit keeps its progress in a marked folder of its own inside of this one.
    fits = rf"[^/]+\.scratch/({re.escape(MARK)}|{PROGRESS_FILES.pattern})"
    own = re.compile(rf"{_TABLE_FILES.pattern}|{fits}|{UNFINISHED}")
    work = WorkFolder(place, own, "give --scratch another folder")
    try:
        work.clear(_TABLE_FILES)
        (place / _TABLE).mkdir(exist_ok=True)
        with listed_temporaries(place / UNFINISHED):
            yield place
    finally:
        work.clear(_TABLE_FILES)
        if not any(place.glob(f"*/{MARK}")):  # else the fit can be continued
            work.remove()


def _output(asked: AggregateOptions) -> str:
    from wisecrowd.cli.outputs import is_standard

    if asked.output is None or is_standard(asked.output):
        raise ParameterError(
            "A fit by shards writes files; give -o FOLDER for one parquet file per shard, or "
            "-o labels.csv."
        )
    return asked.output


def _refuse_others(asked: AggregateOptions) -> None:
    """Refuse options that need all labels in memory."""
    given = {
        "--gold": asked.gold, "--calibrate": asked.calibrate, "--save": asked.save,
        "--json": asked.as_json,
        "--soft-labels-to or --predictions-to": asked.exports.places(),
        "--preferences-to": asked.preference_export.places(),
    }  # fmt: skip
    for name, value in given.items():
        if value:
            remedy = "give --gold to wisecrowd pack" if name == "--gold" else "leave it out"
            raise ParameterError(
                f"{name} does not go with a fit by shards; {remedy}, or use --engine memory."
            )


def _method(pack: str, asked: AggregateOptions, notes: Notes) -> Aggregator:
    """Return the method to fit; of other kinds than classes, one that fits packs."""
    from wisecrowd.cli.parameters import configured_method
    from wisecrowd.core.kinds import get_kind
    from wisecrowd.engines.packs import Pack

    kind, name = Pack(pack).summary.kind, asked.method
    if name == "auto" and kind in OTHERWISE:
        name = OTHERWISE[kind]
        if name != get_kind(kind).default_method:
            notes(f"{get_kind(kind).default_method} cannot fit a pack by shards; {name} is fitted")
    return configured_method(name, asked.parameter, asked.running.seed)


def _note(found: PackFit, notes: Notes) -> None:
    from wisecrowd.cli.pack_options import vocabulary_size

    facts, fit = found.pack.summary, found.fit
    resumed = f", {found.n_resumed} passes of them from before" if found.n_resumed else ""
    more = "" if "chosen" in fit.extra else ": raise -p max_iter or accept it"
    unfinished = "" if fit.converged else f", not converged{more}"
    ties = f"; {found.n_ties} ties" if found.n_ties else ""
    notes(
        f"{found.method}: {facts.n_tasks} tasks, {facts.n_workers} workers"
        f"{vocabulary_size(found.pack)}, {facts.n_annotations} labels; {fit.n_iter} "
        f"iterations{resumed}{unfinished}{ties}"
    )
    if "reason" in fit.extra:
        notes(f"{fit.extra['reason']}; chosen on a sample of {fit.extra['n_sample']} tasks")
    for warning in fit.warnings:
        notes(warning)
    if found.unchecked:
        notes(f"not checked at this size: {', '.join(found.unchecked)}")


def _facts(found: PackFit) -> dict[str, Any]:
    """Return facts for the manifest: the choice of the default method, and missing checks."""
    chosen = {k: v for k, v in found.fit.extra.items() if k in ("chosen", "n_sample")}
    return {**chosen, "not_checked": list(found.unchecked)}


def _write_one(output: str, folder: Path, raw: bool, manifest: Manifest, notes: Notes) -> None:
    """Write the parts as one table, one part in memory at a time."""
    from wisecrowd.cli.replacing import note_written
    from wisecrowd.io.writing import write_in_parts
    from wisecrowd.storage.manifest import write_manifest

    n_rows = write_in_parts(output, _parts(folder, output), neutralise_formulas=not raw)
    write_manifest(output, manifest)
    note_written(notes, output, f"wrote {output} ({n_rows} rows)")


def _parts(folder: Path, output: str) -> Iterator[dict[str, Any]]:
    from wisecrowd.cli.outputs import rounded_estimates
    from wisecrowd.io.tables import read_frame

    text = output.lower().removesuffix(".gz").endswith((".csv", ".tsv", ".tab"))
    for file in sorted(folder.iterdir()):
        table = read_frame(file)
        columns = {name: table[name].combine_chunks() for name in table.column_names}
        if text:
            numbers = {
                name: column.to_numpy(zero_copy_only=False)
                for name, column in columns.items()
                if str(column.type) == "double" and name not in ("task", "label", "item")
            }
            columns |= rounded_estimates(numbers)
        yield columns
