"""``wisecrowd aggregate`` of a pack, shard by shard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wisecrowd.cli.run.inputs import describe_run
from wisecrowd.cli.run.outputs import (
    check_outputs,
    is_standard,
    note_written,
    rounded_estimates,
    write_result,
)
from wisecrowd.cli.run.packs import is_folder, vocabulary_size
from wisecrowd.cli.run.parameters import configured_method
from wisecrowd.cli.run.progress import working
from wisecrowd.cli.terminal import Notes
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.kinds import get_kind
from wisecrowd.engines.threads import get_threads, set_threads
from wisecrowd.io.packed_labels import refuse_options
from wisecrowd.io.tables import read_frame
from wisecrowd.io.writing import write_in_parts
from wisecrowd.packs.files import scratch_beside
from wisecrowd.packs.fit import PROGRESS_FILES, UNFINISHED, fit_pack, is_answer_part
from wisecrowd.packs.pack import Pack
from wisecrowd.storage.atomic import together
from wisecrowd.storage.manifest import write_manifest
from wisecrowd.storage.work_folder import MARK, WorkFolder, listed_temporaries

if TYPE_CHECKING:
    import typer

    from wisecrowd.cli.options.aggregate import AggregateOptions
    from wisecrowd.core.aggregator import Aggregator
    from wisecrowd.packs.fit import PackFit
    from wisecrowd.storage.manifest import Manifest

_TABLE = "table"  # folder for the parts of a table
_TABLE_FILES = re.compile(
    rf"{_TABLE}/(answers|\.wisecrowd-[0-9a-f]{{16}}\.tmp(\.attempts)?)/"
    r"(block-\d+-attempt-\d+/)?\.?part-\d{5}\.parquet(\.\d+\.tmp)?"
)


def aggregate_pack(context: typer.Context, pack: str, asked: AggregateOptions) -> None:
    """Fit a method to a pack by shards, and write answers, workers and manifests."""
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
        from wisecrowd.packs.spark import get_session, spark

        return spark(get_session(), pack)
    return "pool" if asked.packed.engine == "pool" else "files"


@contextmanager
def _work_folder(output: str, scratch: str | None) -> Iterator[Path]:
    """Give a folder for the progress of the fit and the parts of a table.

    The next run removes what a kill left, or continues it.
    """
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
    summary, name = Pack(pack).summary, asked.method
    kind = get_kind(summary.kind)
    if name == "auto":
        name = kind.default_on_packs()
        if getattr(summary, "ordered", False):
            notes(
                f"{name} is fitted, which does not use the order of the classes: methods that do "
                "cannot fit a pack by shards (--engine memory)"
            )
        if name != kind.default_method:
            notes(f"{kind.default_method} cannot fit a pack by shards; {name} is fitted")
    return configured_method(name, asked.parameter, asked.running.seed)


def _note(found: PackFit, notes: Notes) -> None:
    facts, fit = found.pack.summary, found.fit
    resumed = f", {found.n_resumed} passes of them from before" if found.n_resumed else ""
    more = "" if "chosen" in fit.extra else ": raise -p max_iter or accept it"
    unfinished = "" if fit.converged else f", not converged{more}"
    ties = f"; {found.n_ties} ties" if found.n_ties else ""
    notes(
        f"{found.method}: {facts.n_tasks} tasks, {facts.n_workers} workers"
        f"{vocabulary_size(found.pack)}, {facts.n_annotations} labels; {fit.n_iter} "
        f"iteration{'' if fit.n_iter == 1 else 's'}{resumed}{unfinished}{ties}"
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
    n_rows = write_in_parts(output, _parts(folder, output), neutralise_formulas=not raw)
    write_manifest(output, manifest)
    note_written(notes, output, f"wrote {output} ({n_rows} rows)")


def _parts(folder: Path, output: str) -> Iterator[dict[str, Any]]:
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
