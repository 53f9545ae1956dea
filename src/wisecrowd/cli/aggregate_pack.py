"""``wisecrowd aggregate`` of a pack, shard by shard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from wisecrowd.core.exceptions import ParameterError

if TYPE_CHECKING:
    import typer

    from wisecrowd.cli.aggregate import AggregateOptions
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.engines.pack_fit import PackFit
    from wisecrowd.storage.manifest import Manifest


def aggregate_pack(context: typer.Context, pack: str, asked: AggregateOptions) -> None:
    """Fit a method to a pack by shards, and write answers, workers and manifests."""
    from wisecrowd.cli.inputs import describe_run
    from wisecrowd.cli.outputs import check_outputs, write_result
    from wisecrowd.cli.pack_options import is_folder
    from wisecrowd.cli.parameters import configured_method
    from wisecrowd.cli.progress import working
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.engines.pack_fit import fit_pack
    from wisecrowd.engines.threads import get_threads, set_threads
    from wisecrowd.io.packed_labels import refuse_options
    from wisecrowd.storage.atomic import together, when_complete
    from wisecrowd.storage.manifest import write_manifest

    output = _output(asked)
    _refuse_others(asked)
    given = asked.reading.options()
    if given:
        refuse_options({given[0].removeprefix("--").replace("-", "_"): "VALUE"})
    folder = is_folder(output)
    outputs = [*([] if folder else [output]), *([asked.workers] if asked.workers else [])]
    check_outputs(outputs, [pack], folder=output if folder else None)
    set_threads(asked.running.threads)
    engine = "pool" if asked.packed.engine == "pool" else "files"
    with Notes(asked.running.quiet) as notes:
        method = configured_method(asked.method, asked.parameter, asked.running.seed)
        options: dict[str, Any] = {
            "engine": engine, "processes": asked.packed.processes, "soft": asked.soft,
            "scratch": asked.packed.scratch or f"{output.rstrip('/')}.scratch",
            "resume": asked.packed.resume,
        }  # fmt: skip
        with ExitStack() as stack:
            if folder:
                place = output
                stack.enter_context(together())
            else:
                parts = stack.enter_context(TemporaryDirectory(dir=Path(output).parent))
                place = str(Path(parts) / "answers")
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
                    when_complete(lambda: notes(f"wrote {output}"))
                else:
                    _write_one(output, Path(place), asked.raw_csv, manifest, notes)
                if asked.workers:
                    table = found.worker_columns()
                    write_result(table, asked.workers, manifest, notes, raw=asked.raw_csv)


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
        "--json": asked.as_json, "--soft-labels or --predictions": asked.exports.places(),
        "--preferences": asked.preference_export.places(),
    }  # fmt: skip
    for name, value in given.items():
        if value:
            remedy = "give --gold to wisecrowd pack" if name == "--gold" else "leave it out"
            raise ParameterError(
                f"{name} does not go with a fit by shards; {remedy}, or use --engine memory."
            )


def _note(found: PackFit, notes: Notes) -> None:
    facts, fit = found.pack.summary, found.fit
    resumed = f", {found.n_resumed} passes of them from before" if found.n_resumed else ""
    more = "" if "chosen" in fit.extra else ": raise -p max_iter or accept it"
    unfinished = "" if fit.converged else f", not converged{more}"
    ties = f"; {found.n_ties} ties" if found.n_ties else ""
    notes(
        f"{found.method}: {facts.n_tasks} tasks, {facts.n_workers} workers, "
        f"{len(facts.classes)} classes, {facts.n_annotations} labels; {fit.n_iter} "
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
    from wisecrowd.io.writing import write_in_parts
    from wisecrowd.storage.atomic import when_complete
    from wisecrowd.storage.manifest import write_manifest

    n_rows = write_in_parts(output, _parts(folder, output), neutralise_formulas=not raw)
    write_manifest(output, manifest)
    when_complete(lambda: notes(f"wrote {output} ({n_rows} rows)"))


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
                if str(column.type) == "double" and name not in ("task", "label")
            }
            columns |= rounded_estimates(numbers)
        yield columns
