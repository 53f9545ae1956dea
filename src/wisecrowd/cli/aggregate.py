"""``wisecrowd aggregate``: from raw annotations to trusted labels and worker quality."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import exports, options
from wisecrowd.cli.option_groups import command
from wisecrowd.cli.options import Reading

if TYPE_CHECKING:
    from wisecrowd.cli.inputs import KnownFile
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.base import Aggregator
    from wisecrowd.core.labels import CrowdLabels
    from wisecrowd.storage.manifest import Manifest


Method = Annotated[
    str, typer.Option("-m", "--method", metavar="NAME", help="See `wisecrowd methods`.")
]
Workers = Annotated[
    str | None,
    typer.Option("--workers", metavar="FILE", help="Write the quality of every worker here."),
]
Gold = Annotated[
    str | None, typer.Option("--gold", metavar="FILE", help="Known classes: task, label.")
]
Soft = Annotated[
    bool, typer.Option("--soft", help="Add the probability of every class, as p_CLASS.")
]
Calibrate = Annotated[
    bool,
    typer.Option(
        "--calibrate",
        help="Make confidences as sure as they should be, by a temperature chosen without truth.",
    ),
]
Save = Annotated[
    str | None,
    typer.Option("--save", metavar="FOLDER", help="Save the fitted method for wisecrowd.load."),
]


@command
def aggregate(
    context: typer.Context,
    files: options.Files,
    *,
    output: options.Output = None,
    workers: Workers = None,
    method: Method = "dawid-skene",
    parameter: options.Parameters = None,
    gold: Gold = None,
    soft: Soft = False,
    calibrate: Calibrate = False,
    others: exports.Exports,
    save: Save = None,
    gold_columns: options.GoldColumns = None,
    reading: Reading,
    as_json: options.Json = False,
    raw_csv: options.RawCsv = False,
    seed: options.Seed = None,
    threads: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Infer the label of every task, and how good every worker is.

    The result has one row per task: task, label, confidence, tie, n_labels.
    """
    from wisecrowd.cli.inputs import KnownFile
    from wisecrowd.cli.outputs import is_standard, split_output

    table, document = split_output(output, as_json)
    outputs = {"labels": table, "workers": workers, "model": save, "json": document}
    if as_json and is_standard(workers):
        outputs["workers"] = None
    _run(
        context.obj, files, reading, outputs, others,
        method=method, parameters=parameter or [],
        gold=KnownFile.given(gold, "--gold", gold_columns, reading), soft=soft, calibrate=calibrate,
        as_json=as_json, raw=raw_csv, seed=seed, threads=threads, quiet=quiet,
    )  # fmt: skip


def _run(
    command: list[str],
    files: list[str],
    reading: Reading,
    outputs: dict[str, str | None],
    others: exports.Exports,
    *,
    method: str,
    parameters: list[str],
    gold: KnownFile | None,
    soft: bool,
    calibrate: bool,
    as_json: bool,
    raw: bool,
    seed: int | None,
    threads: int | None,
    quiet: bool,
) -> None:
    from wisecrowd.cli.inputs import read_gold, read_labels, source_files
    from wisecrowd.cli.outputs import check_outputs, is_standard
    from wisecrowd.cli.parameters import configured_method
    from wisecrowd.cli.progress import working
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.exceptions import ParameterError
    from wisecrowd.engines.threads import get_threads, set_threads
    from wisecrowd.storage.manifest import Manifest

    workers = outputs["workers"]
    if not as_json and outputs["labels"] is None and workers is not None and is_standard(workers):
        raise ParameterError("Labels and workers cannot both go to standard output; use --json.")
    set_threads(threads)
    sources = [*files, *([gold.path] if gold else [])]
    check_outputs(
        [outputs["labels"], outputs["workers"]], [*sources, *reading.key_files],
        folder=outputs["model"], others=[*others.places(), *filter(None, [outputs["json"]])],
    )  # fmt: skip
    model = configured_method(method, parameters, seed)
    others.check(files, reading)
    with Notes(quiet) as notes:
        labels = read_labels(files, reading, notes)
        known = None if gold is None else read_gold(gold, notes)
        with working(f"fitting {method}", quiet=quiet):
            model.fit(labels, gold=known)
        _note_fit(method, model, labels, seed, notes)
        if calibrate:
            _calibrate(model, labels, seed, notes)
        manifest = Manifest.describe(
            method=method,
            parameters=model.get_params(deep=False),
            seed=_seed_of(model),
            inputs=source_files(sources),
            command=["wisecrowd", *command],
            threads=get_threads(),
        )
        _write(
            model, labels, outputs, manifest, notes, soft=soft, as_json=as_json, raw=raw,
            write_others=lambda: others.write(model, manifest, notes, files, reading),
        )  # fmt: skip


def _write(
    model: Aggregator,
    labels: CrowdLabels,
    outputs: dict[str, str | None],
    manifest: Manifest,
    notes: Notes,
    *,
    soft: bool,
    as_json: bool,
    raw: bool,
    write_others: Callable[[], None],
) -> None:
    """Write the method, the tables, and what remains of them to standard output."""
    from wisecrowd.cli.outputs import give_json, write_result
    from wisecrowd.storage.atomic import together, when_complete
    from wisecrowd.storage.manifest import write_manifest

    tables = {"labels": _task_table(model, soft), "workers": model.worker_columns()}
    with together():
        if outputs["model"] is not None:
            model.save(outputs["model"])
            write_manifest(outputs["model"], manifest)
            when_complete(lambda: notes(f"saved the method in {outputs['model']}"))
        write_others()
        for name, table in tables.items():
            if outputs[name] is not None or (name == "labels" and not as_json):
                write_result(table, outputs[name], manifest, notes, raw=raw)
        if as_json:
            give_json(
                lambda: _summary(model, labels, manifest, notes, tables, outputs),
                outputs["json"], manifest, notes,
            )  # fmt: skip


def _task_table(model: Aggregator, soft: bool) -> dict[str, Any]:
    from wisecrowd.core.memory import require_memory
    from wisecrowd.core.result import dense_rows

    table: dict[str, Any] = dict(model.task_columns())
    if soft:
        n_classes = len(model.classes_)
        require_memory(
            8 * len(model.tasks_) * n_classes, "The probabilities of all classes would",
            "leave out --soft",
        )  # fmt: skip
        dense = dense_rows(model.probas_)
        table |= {f"p_{c}": dense[:, k] for k, c in enumerate(model.classes_.tolist())}
    return table


def _calibrate(model: Aggregator, labels: CrowdLabels, seed: int | None, notes: Notes) -> None:
    """Replace the probabilities of the fit by those at the temperature that suits it."""
    from wisecrowd.audit.part import NotApplicable
    from wisecrowd.audit.temperature import find_temperature
    from wisecrowd.core.encoding import lookup
    from wisecrowd.core.exceptions import DataError
    from wisecrowd.core.memory import require_memory
    from wisecrowd.core.result import confidence_of

    require_memory(
        32 * labels.n_tasks * labels.n_classes, "Correcting the probabilities of all classes would",
        "leave out --calibrate",
    )  # fmt: skip
    try:
        found = find_temperature(labels, fit=model, random_state=seed or 0)
    except NotApplicable as reason:
        raise DataError(f"{reason} Leave out --calibrate.") from None
    model.probas_ = found.apply(model.probas_)
    model.confidence_ = confidence_of(model.probas_, lookup(model.labels_, model.classes_))
    notes(f"confidences are at temperature {found.temperature:.3g}; labels are as they were")


def _note_fit(
    method: str, model: Aggregator, labels: CrowdLabels, seed: int | None, notes: Notes
) -> None:
    from wisecrowd.cli.parameters import seeds_of

    if seed is not None and not seeds_of(model):
        notes(f"{method} has nothing random: --seed makes no difference")
    steps = f"{model.n_iter_} iteration{'s' if model.n_iter_ != 1 else ''}"
    if not model.converged_:
        steps += ", not converged: raise -p max_iter or accept it"
    ties = int(model.ties_.sum())
    notes(
        f"{method}: {labels.n_tasks} tasks, {labels.n_workers} workers, "
        f"{labels.n_classes} classes, {labels.n_annotations} labels; {steps}"
        + (f"; {ties} tie{'s' if ties > 1 else ''}" if ties else "")
    )
    for warning in model.warnings_:  # those that were told as it ran are not told again
        notes(warning)


def _seed_of(model: Aggregator) -> int | None:
    from wisecrowd.cli.parameters import seeds_of

    seed = next(iter(seeds_of(model).values()), None)
    return seed if isinstance(seed, int) else None


def _summary(
    model: Aggregator,
    labels: CrowdLabels,
    manifest: Manifest,
    notes: Notes,
    tables: dict[str, Any],
    outputs: dict[str, str | None],
) -> dict[str, Any]:
    """Return the run as one object; tables that went to a file are named, not repeated."""
    from wisecrowd.cli.outputs import rows_of

    facts: dict[str, Any] = {
        "method": manifest.method,
        "parameters": manifest.parameters,
        "seed": manifest.seed,
        "wisecrowd": manifest.wisecrowd,
        "n_tasks": labels.n_tasks,
        "n_workers": labels.n_workers,
        "n_labels": labels.n_annotations,
        "classes": labels.classes,
        "n_iter": model.n_iter_,
        "converged": model.converged_,
        "objective": model.history_[-1] if len(model.history_) else None,
        "n_ties": int(model.ties_.sum()),
        "notes": notes.said,
    }
    for name, table in tables.items():
        facts[name] = outputs[name] if outputs[name] is not None else rows_of(table)
    return facts
