"""``wisecrowd aggregate``: labels and worker quality from raw annotations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import options
from wisecrowd.cli.box_export import BoxExport
from wisecrowd.cli.exports import Exports
from wisecrowd.cli.graph_reading import GraphReading
from wisecrowd.cli.group_options import FairOptions
from wisecrowd.cli.option_groups import command
from wisecrowd.cli.options import Reading, Running
from wisecrowd.cli.pack_options import PackOptions
from wisecrowd.cli.preference_export import PreferenceExport

if TYPE_CHECKING:
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.aggregator import Aggregator
    from wisecrowd.core.annotations import Annotations
    from wisecrowd.core.labels import CrowdLabels
    from wisecrowd.storage.manifest import Manifest


_COUNTED = ("tasks", "workers")  # attributes that a summary counts but does not list
_CHOICE = ("chosen", "scores", "agreement", "overruled", "reason")  # of a method that chooses


@dataclass(frozen=True, kw_only=True)
class AggregateOptions:
    """The options of ``wisecrowd aggregate``."""

    output: options.Output = None
    workers: options.Workers = None
    method: options.Method = "auto"
    parameter: options.Parameters = None
    gold: options.Gold = None
    soft: options.Soft = False
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Calibrate confidences by temperature scaling, without truth; of numbers, the "
            "intervals on --gold.",
        ),
    ] = False
    exports: Exports
    preference_export: PreferenceExport
    box_export: BoxExport
    graph: GraphReading
    save: Annotated[
        str | None,
        typer.Option("--save", metavar="FOLDER", help="Save the fitted method for wisecrowd.load."),
    ] = None
    gold_columns: options.GoldColumns = None
    groups: FairOptions
    reading: Reading
    packed: PackOptions
    as_json: options.Json = False
    raw_csv: options.RawCsv = False
    overwrite: options.Overwrite = False
    running: Running


@command
def aggregate(context: typer.Context, files: options.Files, asked: AggregateOptions) -> None:
    """Estimate the label of every task and the accuracy of every worker.

    The result has one row per task: task, label, confidence, tie, n_labels.

    A pack may be fitted shard by shard (--engine files, pool for several processes, or spark). The
    output is then a folder with one parquet file per shard, or one table if -o has its suffix.
    """
    from wisecrowd.api import type_for
    from wisecrowd.cli.inputs import KnownFile, describe_run, read_gold, read_labels
    from wisecrowd.cli.pack_options import pack_gold
    from wisecrowd.cli.parameters import configured_method, named_method
    from wisecrowd.cli.progress import working
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.kinds import NUMBERS, kind_of
    from wisecrowd.core.registry import kebab_case
    from wisecrowd.engines.threads import get_threads, set_threads

    if asked.packed.by_shards(files, asked.output):
        from wisecrowd.cli.aggregate_pack import aggregate_pack

        aggregate_pack(context, files[0], asked)
        return
    gold = KnownFile.given(asked.gold, "--gold", asked.gold_columns, asked.reading)
    asked.groups.check()
    known_files = [*([gold.path] if gold else []), *asked.groups.sources()]
    sources = [*files, *known_files, *asked.preference_export.sources()]
    asked.graph.check()
    sources += asked.graph.sources()
    asked.preference_export.check(asked.reading.declared_type)
    asked.box_export.check(asked.reading.declared_type)
    places = _checked_places(asked, sources)
    set_threads(asked.running.threads)
    model = named_method(context, asked.method, asked.parameter, asked.reading, asked.running.seed)
    reading = replace(asked.reading, type=type_for(model, asked.reading.declared_type))
    asked.exports.check(files, reading)
    with Notes(asked.running.quiet) as notes:
        labels = asked.groups.attached(read_labels(files, reading, notes))
        chosen = model is not None
        if model is None:
            name = kind_of(labels).default_method
            model = configured_method(name, asked.parameter, asked.running.seed)
        model = asked.graph.applied(model, chosen, labels, notes)
        method = kebab_case(type(model).__name__)
        _check_kind_of_options(model, method, asked)
        known = read_gold(gold, notes) or pack_gold(files)
        on_gold = asked.calibrate and model.takes == NUMBERS  # gold of a fit has no error to show
        with working(f"fitting {method}", notes):
            model.fit(labels, gold=None if on_gold else known)
        _note_fit(method, model, labels, asked.running.seed, notes)
        if known and not on_gold:
            notes(f"{len(known)} gold task{'s' if len(known) > 1 else ''} used")
        if method == "thresholds" and not (_names_method(context) or asked.parameter):
            _advise(labels, notes)
        if on_gold:
            model = model.calibrated(known)
            notes(f"standard deviations are {model.interval_factor_:.3g} times those of the fit")
        elif asked.calibrate:
            _calibrate(model, labels, asked.running.seed, notes)
        manifest = describe_run(
            context, sources, method=method, parameters=_parameters(model),
            seed=_seed_of(model), threads=get_threads(),
        )  # fmt: skip
        _write(model, labels, files, asked, places, manifest, notes)


def _check_kind_of_options(model: Aggregator, method: str, asked: AggregateOptions) -> None:
    """Refuse options that do not go with the kind of the labels."""
    from wisecrowd.core.answers import ClassAnswers
    from wisecrowd.core.exceptions import ParameterError
    from wisecrowd.core.kinds import BOXES, NUMBERS

    asked.preference_export.check(model.takes)
    asked.box_export.check(model.takes)
    if model.takes == NUMBERS and asked.calibrate and asked.gold is None:
        raise ParameterError("--calibrate needs known numbers to widen intervals; give --gold.")
    if issubclass(model._kind().answers, ClassAnswers):
        return
    if model.takes == BOXES and asked.gold is not None:
        raise ParameterError("Methods for boxes take no --gold; leave it out.")
    if asked.exports.soft_labels is not None or (asked.calibrate and model.takes != NUMBERS):
        raise ParameterError(
            f"--calibrate and --soft-labels-to are for classes, and {method} takes {model.takes}; "
            "leave them out."
        )
    asked.exports.check_kind(model.takes, method)


def _checked_places(asked: AggregateOptions, sources: list[str]) -> dict[str, str | None]:
    """Return the outputs of labels, workers and JSON; None is standard output or no output."""
    from wisecrowd.cli.outputs import check_outputs, is_standard, split_output
    from wisecrowd.core.exceptions import ParameterError
    from wisecrowd.storage.models import is_model_file

    table, document = split_output(asked.output, asked.as_json)
    workers = asked.workers
    if asked.as_json and is_standard(workers):
        workers = None
    if not asked.as_json and table is None and workers is not None and is_standard(workers):
        raise ParameterError("Labels and workers cannot both go to standard output; use --json.")
    own = {} if asked.save is None else {asked.save: is_model_file}
    check_outputs(
        [table, workers], [*sources, *asked.reading.key_files], folder=asked.save,
        others=[
            *asked.exports.places(), *asked.preference_export.places(),
            *asked.box_export.places(), *filter(None, [document]),
        ],
        overwrite=asked.overwrite, own=asked.exports.own() | own,
    )  # fmt: skip
    return {"labels": table, "workers": workers, "json": document}


def _write(
    model: Aggregator,
    labels: CrowdLabels,
    files: list[str],
    asked: AggregateOptions,
    places: dict[str, str | None],
    manifest: Manifest,
    notes: Notes,
) -> None:
    """Write the method and the tables; tables without a file go to standard output."""
    from wisecrowd.cli.outputs import give_json, write_result
    from wisecrowd.cli.replacing import note_written
    from wisecrowd.storage.atomic import together
    from wisecrowd.storage.manifest import write_manifest

    decided = asked.groups.decided(_task_table(model, asked.soft), model, labels, notes)
    tables = {"labels": decided, "workers": model.worker_columns()}
    with together():
        if asked.save is not None:
            model.save(asked.save)
            write_manifest(asked.save, manifest)
            note_written(notes, asked.save, f"saved the method in {asked.save}")
        asked.exports.write(model, manifest, notes, files, asked.reading)
        asked.preference_export.write(model, labels, manifest, notes)
        asked.box_export.write(model, labels, manifest, notes)
        for name, table in tables.items():
            if places[name] is not None or (name == "labels" and not asked.as_json):
                write_result(table, places[name], manifest, notes, raw=asked.raw_csv)
        if asked.as_json:
            give_json(
                lambda: _summary(model, labels, manifest, notes, tables, places),
                places["json"], manifest, notes,
            )  # fmt: skip


def _task_table(model: Aggregator, soft: bool) -> dict[str, Any]:
    soft_columns = model._kind().answers.soft_columns(vars(model)) if soft else {}
    table = {**model.main_columns(), **soft_columns}
    if "rank" in table:  # a ranking is read from its top
        order = table["rank"].argsort(kind="stable")
        table = {name: values[order] for name, values in table.items()}
    return table


def _calibrate(model: Aggregator, labels: CrowdLabels, seed: int | None, notes: Notes) -> None:
    """Replace the probabilities of the fit by calibrated ones."""
    from wisecrowd.audit.part import NotApplicable
    from wisecrowd.audit.temperature import find_temperature
    from wisecrowd.core.exceptions import DataError
    from wisecrowd.core.ids.encoding import lookup
    from wisecrowd.core.memory_check import require_memory
    from wisecrowd.core.result import confidence_of

    require_memory(
        32 * labels.n_tasks * labels.n_classes, "Correcting the probabilities of all classes would",
        "leave out --calibrate",
    )  # fmt: skip
    try:
        found = find_temperature(labels, fit=model, random_state=seed or 0)
    except NotApplicable as reason:
        raise DataError(f"{reason} Leave out --calibrate.") from None
    probas = found.apply(model.probas_)
    confidence = confidence_of(probas, lookup(model.labels_, model.classes_))
    vars(model).update(probas_=probas, confidence_=confidence)
    notes(f"confidences are at temperature {found.temperature:.3g}; labels are as they were")


def _note_fit(
    method: str, model: Aggregator, labels: Annotations, seed: int | None, notes: Notes
) -> None:
    from wisecrowd.cli.parameters import seeds_of

    if seed is not None and not seeds_of(model):
        notes(f"{method} has nothing random: --seed makes no difference")
    steps = f"{model.n_iter_} iteration{'s' if model.n_iter_ != 1 else ''}"
    if not model.converged_:
        steps += ", not converged"
        steps += ": raise -p max_iter or accept it" if hasattr(model, "max_iter") else ""
    sizes = [f"{len(ids)} {name}" for name, ids in labels.vocabularies().items()]
    counts = model._kind().answers.counts(vars(model)).items()
    counted = [f"; {n} {name if n > 1 else name[:-1]}" for name, n in counts if n]
    notes(
        f"{method}: {', '.join(sizes)}, {labels.n_annotations} labels; {steps}" + "".join(counted)
    )
    if "reason_" in vars(model):
        notes(f"{method}: {model.reason_}")
    for warning in model.warnings_:  # warnings shown during the fit are not repeated
        notes(warning)


def _names_method(context: typer.Context) -> bool:
    source = context.get_parameter_source("method")
    return source is not None and source.name == "COMMANDLINE"


def _advise(labels: Annotations, notes: Notes) -> None:
    """Note that another method fits these grades better; a quiet run does not look for one."""
    from wisecrowd.cli.ordered_advice import better_than_thresholds
    from wisecrowd.cli.progress import working

    if notes.quiet:
        return
    with working("comparing with ordinal-latent", notes):
        advice = better_than_thresholds(labels)
    if advice is not None:
        notes(advice)


def _parameters(model: Aggregator) -> dict[str, Any]:
    """Return the parameters for the manifest; a graph is among the sources."""
    return {name: value for name, value in model.get_params(deep=False).items() if name != "graph"}


def _seed_of(model: Aggregator) -> int | None:
    from wisecrowd.cli.parameters import seeds_of

    seed = next(iter(seeds_of(model).values()), None)
    return seed if isinstance(seed, int) else None


def _summary(
    model: Aggregator,
    labels: Annotations,
    manifest: Manifest,
    notes: Notes,
    tables: dict[str, Any],
    places: dict[str, str | None],
) -> dict[str, Any]:
    """Return the run as one object; tables in files are named, not repeated."""
    from wisecrowd.cli.outputs import rows_of

    facts: dict[str, Any] = {
        "method": manifest.method,
        "parameters": manifest.parameters,
        "seed": manifest.seed,
        "wisecrowd": manifest.wisecrowd,
        "n_tasks": labels.n_tasks,
        "n_workers": labels.n_workers,
        "n_labels": labels.n_annotations,
        **{name: ids for name, ids in labels.vocabularies().items() if name not in _COUNTED},
        "n_iter": model.n_iter_,
        "converged": model.converged_,
        "objective": model.history_[-1] if len(model.history_) else None,
        **{f"n_{name}": n for name, n in model._kind().answers.counts(vars(model)).items()},
        **{name: vars(model)[f"{name}_"] for name in _CHOICE if f"{name}_" in vars(model)},
        "notes": notes.said,
    }
    for name, table in tables.items():
        facts[name] = places[name] if places[name] is not None else rows_of(table)
    return facts
