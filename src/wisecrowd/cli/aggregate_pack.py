"""``wisecrowd aggregate`` of a pack, shard by shard."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.kinds import LABELS

if TYPE_CHECKING:
    import typer

    from wisecrowd.cli.aggregate import AggregateOptions
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.aggregator import Aggregator
    from wisecrowd.engines.pack_fit import PackFit
    from wisecrowd.storage.manifest import Manifest

SAMPLE = 200_000  # labels on which the default method chooses
OTHERWISE = {  # if the chosen or default method cannot fit a pack
    "labels": "dawid-skene", "numbers": "gaussian-em", "pairs": "bradley-terry",
}  # fmt: skip


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
    with Notes(asked.running.quiet) as notes:
        if asked.method == "auto":
            method = _chosen(pack, asked, notes)
        else:
            method = configured_method(asked.method, asked.parameter, asked.running.seed)
        options: dict[str, Any] = {
            "engine": _engine(pack, asked), "processes": asked.packed.processes, "soft": asked.soft,
            "scratch": asked.packed.scratch or f"{output.rstrip('/')}.scratch",
            "resume": asked.packed.resume,
        }  # fmt: skip
        with ExitStack() as stack:
            if folder:
                place = output
                stack.enter_context(together())
            else:
                place = str(stack.enter_context(_parts_of_table(Path(options["scratch"]))))
            with working(f"fitting {asked.method} to {pack}", notes):
                found = fit_pack(method, pack, place, **options)
            _note(found, notes)
            manifest = describe_run(
                context, [pack], method=found.method, parameters=method.get_params(deep=False),
                threads=get_threads(),
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


def _engine(pack: str, asked: AggregateOptions) -> Any:
    if asked.packed.engine == "spark":
        from wisecrowd.engines.spark_engine import spark
        from wisecrowd.engines.spark_session import get_session

        return spark(get_session(), pack)
    return "pool" if asked.packed.engine == "pool" else "files"


@contextmanager
def _parts_of_table(scratch: Path) -> Iterator[Path]:
    """Give the folder for the parts of a table; the next run removes what a kill left of it."""
    parts = scratch / "table"
    shutil.rmtree(parts, ignore_errors=True)
    parts.mkdir(parents=True)
    try:
        yield parts / "answers"
    finally:
        shutil.rmtree(parts, ignore_errors=True)
        with suppress(OSError):  # a fit that can be continued is still there
            scratch.rmdir()


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


def _chosen(pack: str, asked: AggregateOptions, notes: Notes) -> Aggregator:
    """Return the method that the default method chooses on a sample of the tasks."""
    from wisecrowd.cli.parameters import configured_method
    from wisecrowd.cli.progress import working
    from wisecrowd.core.registry import get_method, kebab_case
    from wisecrowd.engines.answer_parts import AnswerParts, PartPlan
    from wisecrowd.engines.packed_shard import PackedCrowd
    from wisecrowd.engines.packs import Pack

    opened = Pack(pack)
    if opened.summary.kind != LABELS:
        return _default(opened.summary.kind, asked, notes)
    sample = PackedCrowd(opened, AnswerParts(PartPlan())).sample(SAMPLE)
    with working("choosing a method on a sample", notes):
        auto = configured_method("auto", asked.parameter, asked.running.seed)
        auto._fit_without_checks(sample)
    name = kebab_case(type(auto.members_[0]).__name__)
    able = get_method(name).promises.shardable
    notes(
        f"auto chooses {name} on a sample of {sample.n_annotations} labels"
        + ("" if able else f", which cannot fit a pack; {OTHERWISE[LABELS]} is fitted")
        + "; it is not pooled with votes"
    )
    return configured_method(name if able else OTHERWISE[LABELS], None, asked.running.seed)


def _default(kind: str, asked: AggregateOptions, notes: Notes) -> Aggregator:
    """Return the default method of a kind without a choice, or the one that fits packs."""
    from wisecrowd.cli.parameters import configured_method
    from wisecrowd.core.kinds import get_kind

    name, able = get_kind(kind).default_method, OTHERWISE[kind]
    if name != able:
        notes(f"{name} cannot fit a pack by shards; {able} is fitted")
    return configured_method(able, asked.parameter, asked.running.seed)


def _note(found: PackFit, notes: Notes) -> None:
    from wisecrowd.cli.pack_options import vocabulary_size

    facts, fit = found.pack.summary, found.fit
    resumed = f", {found.n_resumed} passes of them from before" if found.n_resumed else ""
    unfinished = "" if fit.converged else ", not converged: raise -p max_iter or accept it"
    ties = f"; {found.n_ties} ties" if found.n_ties else ""
    notes(
        f"{found.method}: {facts.n_tasks} tasks, {facts.n_workers} workers"
        f"{vocabulary_size(found.pack)}, {facts.n_annotations} labels; {fit.n_iter} "
        f"iterations{resumed}{unfinished}{ties}"
    )
    for finding in fit.findings:
        notes(str(finding))
    notes("the checks of a fit need the labels in memory and were not run")


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
                if str(column.type) == "double" and name not in ("task", "label", "item")
            }
            columns |= rounded_estimates(numbers)
        yield columns
