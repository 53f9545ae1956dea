"""``wisecrowd aggregate``: labels and worker quality from raw annotations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from wisecrowd.api import type_for
from wisecrowd.cli.options.aggregate import AggregateOptions
from wisecrowd.cli.run.exports import (
    Outcome,
    check_kind_of_predictions,
    check_predictions,
    checked_places,
    own_folders,
    write,
)
from wisecrowd.cli.run.groups import with_bounded_gaps, with_groups
from wisecrowd.cli.run.inputs import KnownFile, describe_run, read_gold, read_labels
from wisecrowd.cli.run.outputs import (
    check_outputs,
    give_json,
    is_standard,
    note_written,
    rows_of,
    split_output,
    write_result,
)
from wisecrowd.cli.run.packs import by_shards, pack_gold
from wisecrowd.cli.run.parameters import configured_method, named_method, seeds_of
from wisecrowd.cli.run.progress import working
from wisecrowd.cli.terminal import Notes
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.kinds import kind_of
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.part import NotApplicable
from wisecrowd.core.registry import kebab_case
from wisecrowd.core.result import confidence_of
from wisecrowd.engines.threads import get_threads, set_threads
from wisecrowd.kinds.classes.answers import ClassAnswers
from wisecrowd.storage.atomic import together
from wisecrowd.storage.manifest import write_manifest
from wisecrowd.storage.models import is_model_file

if TYPE_CHECKING:
    from wisecrowd.core.aggregator import Aggregator
    from wisecrowd.core.annotations import Annotations
    from wisecrowd.kinds.classes.container import CrowdLabels
    from wisecrowd.storage.manifest import Manifest

_COUNTED = ("tasks", "workers")  # attributes that a summary counts but does not list

_CHOICE = ("chosen", "scores", "agreement", "overruled", "reason")  # of a method that chooses


def aggregate(context: typer.Context, files: list[str], asked: AggregateOptions) -> None:
    """Run ``wisecrowd aggregate``."""
    if by_shards(asked.packed, files, asked.output):
        from wisecrowd.cli.run.aggregate_pack import aggregate_pack

        aggregate_pack(context, files[0], asked)
        return
    gold = KnownFile.given(asked.gold, "--gold", asked.gold_columns, asked.reading)
    sources = [*files, *([gold.path] if gold else [])]
    declared = asked.reading.declared_type
    for group in asked.groups_of_options:
        group.check(declared)
        sources += group.sources()
    places = _checked_places(asked, sources)
    set_threads(asked.running.threads)
    model = named_method(context, asked.method, asked.parameter, asked.reading, asked.running.seed)
    reading = replace(asked.reading, type=type_for(model, declared))
    check_predictions(asked.exports, files, reading)
    with Notes(asked.running.quiet) as notes:
        labels = with_groups(read_labels(files, reading, notes), asked.groups)
        chosen = model is not None
        if model is None:
            name = kind_of(labels).default_method
            model = configured_method(name, asked.parameter, asked.running.seed)
        if asked.graph.sources():
            from wisecrowd.cli.run.features import with_graph

            model = with_graph(model, asked.graph, chosen, labels, notes)
        method = kebab_case(type(model).__name__)
        _check_kind_of_options(model, method, asked)
        known = read_gold(gold, notes) or pack_gold(files)
        # Known answers that a fit has used have no error to show.
        on_gold = asked.calibrate and hasattr(model, "calibrated")
        with working(f"fitting {method}", notes):
            model.fit(labels, gold=None if on_gold else known)
        if on_gold:
            model = model.calibrated(known)
        _note_fit(method, model, labels, asked.running.seed, notes)
        if known and not on_gold:
            notes(f"{len(known)} gold task{'s' if len(known) > 1 else ''} used")
        if on_gold:
            model = _with_known(model, known, notes)
        elif asked.calibrate:
            _calibrate(model, labels, asked.running.seed, notes)
        parameters = model.get_params(deep=False)
        parameters.pop("graph", None)  # it is among the sources
        seed = next(iter(seeds_of(model).values()), None)
        manifest = describe_run(
            context, sources, method=method, parameters=parameters,
            seed=seed if isinstance(seed, int) else None, threads=get_threads(),
        )  # fmt: skip
        _write(model, labels, files, asked, places, manifest, notes)


def _check_kind_of_options(model: Aggregator, method: str, asked: AggregateOptions) -> None:
    """Refuse options that do not go with the kind of the labels."""
    for group in asked.groups_of_options:
        group.check(model.takes)
    calibrated = hasattr(model, "calibrated")  # on known answers
    if calibrated and asked.calibrate and asked.gold is None:
        raise ParameterError("--calibrate needs known numbers to widen intervals; give --gold.")
    if issubclass(model._kind().answers, ClassAnswers):
        return
    if asked.gold is not None and not model._kind().gold_in_rows:
        raise ParameterError(f"Methods for {model.takes} take no --gold; leave it out.")
    if asked.exports.soft_labels is not None or (asked.calibrate and not calibrated):
        raise ParameterError(
            f"--calibrate and --soft-labels-to are for classes, and {method} takes {model.takes}; "
            "leave them out."
        )
    check_kind_of_predictions(asked.exports, model.takes, method)


def _checked_places(asked: AggregateOptions, sources: list[str]) -> dict[str, str | None]:
    """Return the outputs of labels, workers and JSON; None is standard output or no output."""
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
            *checked_places(asked.groups_of_options), *filter(None, [document]),
        ],
        overwrite=asked.overwrite, own=own_folders(asked.exports) | own,
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
    decided = with_bounded_gaps(_task_table(model, asked.soft), asked.groups, model, labels, notes)
    tables = {"labels": decided, "workers": model.worker_columns()}
    with together():
        if asked.save is not None:
            model.save(asked.save)
            write_manifest(asked.save, manifest)
            note_written(notes, asked.save, f"saved the method in {asked.save}")
        for group in asked.groups_of_options:
            write(group, Outcome(model, manifest, notes, labels, files, asked.reading))
        printed = () if asked.as_json else ("labels",)
        for name, table in tables.items():
            if places[name] is not None or name in printed:
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


def _with_known(model: Any, known: Any, notes: Notes) -> Any:
    """Return a calibrated method that gives known tasks their numbers, and say what changed."""
    from wisecrowd.kinds.numbers.methods.intervals import with_known

    notes(f"standard deviations are {model.interval_factor_:.3g} times those of the fit")
    level, slope = model.correction_
    if (level, slope) != (0.0, 1.0):
        notes(f"values are corrected by a level of {level:.3g} and a slope of {slope:.3g}")
    notes(f"{len(known)} known numbers stand as they were given")
    return with_known(model, known)


def _calibrate(model: Aggregator, labels: CrowdLabels, seed: int | None, notes: Notes) -> None:
    """Replace the probabilities of the fit by calibrated ones."""
    from wisecrowd.kinds.classes.audit.fit import find_temperature

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


def _summary(
    model: Aggregator,
    labels: Annotations,
    manifest: Manifest,
    notes: Notes,
    tables: dict[str, Any],
    places: dict[str, str | None],
) -> dict[str, Any]:
    """Return the run as one object; tables in files are named, not repeated."""
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
