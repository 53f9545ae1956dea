"""``wisecrowd train``: a predictor for new data from features and raw annotations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from wisecrowd.api import type_for
from wisecrowd.cli.main import INTERRUPTED
from wisecrowd.cli.options.features import FeatureReading
from wisecrowd.cli.options.reading import Reading
from wisecrowd.cli.options.train import TrainOptions
from wisecrowd.cli.run.exports import Outcome, checked_places, write
from wisecrowd.cli.run.features import read_feature_table
from wisecrowd.cli.run.inputs import KnownFile, describe_run, read_gold, read_labels
from wisecrowd.cli.run.outputs import check_outputs, note_written, print_json, write_result
from wisecrowd.cli.run.parameters import configured_method
from wisecrowd.cli.run.progress import working
from wisecrowd.cli.run.training import (
    TrainingLog,
    all_processes,
    best_and_worst,
    held_out_score,
    is_interrupted,
    is_log,
    leads,
    log_of,
    next_command,
    outcome,
    show,
)
from wisecrowd.cli.terminal import Notes
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.kinds import get_kind, kind_of
from wisecrowd.core.registry import kebab_case
from wisecrowd.io.feature_files import ids_of_rows
from wisecrowd.io.misreadings import ONE_WORKER, WORKER_PER_TASK
from wisecrowd.storage.atomic import together
from wisecrowd.storage.manifest import write_manifest
from wisecrowd.storage.models import is_checkpoint, is_model_file

if TYPE_CHECKING:
    from wisecrowd.core.annotations import Annotations
    from wisecrowd.storage.manifest import Manifest

PARTS = ("classes", "items")  # vocabularies that the summary lists


def train(context: typer.Context, features: str, files: list[str], asked: TrainOptions) -> None:
    """Run ``wisecrowd train``."""
    gold = KnownFile.given(asked.gold, "--gold", asked.gold_columns, asked.reading)
    sources = _checked_sources(features, files, asked)
    model: Any = _named_learner(asked)
    reading = replace(asked.reading, type=type_for(model, asked.reading.declared_type))
    asked.preference_export.check(None if model is None else model.takes)
    with Notes(asked.quiet or not leads()) as notes:
        labels = read_labels(files, reading, notes, accepted=(ONE_WORKER, WORKER_PER_TASK))
        if model is None:
            kind = kind_of(labels)
            model = _default_learner(kind.name, asked)
            asked.preference_export.check(kind.name)
        method = kebab_case(type(model).__name__)
        checkpoint = _set_checkpoint(model, method, asked, notes)
        table = read_feature_table(asked.feature_reading, features, notes)
        ids = ids_of_rows(table, asked.ids)
        known = _known(model, method, asked, gold, notes)
        log = TrainingLog(log_of(asked.output), asked.resume)
        update = log.update if leads() else None
        with working(f"training {method}", notes, log=update), all_processes(model):
            model.fit(
                table.X, labels, **{_rows_are(model): ids}, resume=asked.how_to_start(), **known
            )  # fmt: skip
        if not leads():
            return
        notes(outcome(method, model, labels, _rows_are(model)))
        if "reason_" in vars(model):
            notes(f"{method}: {model.reason_}")
        if "checkpoint" in model.get_params():
            model.checkpoint = None  # the location in this run does not matter to the next
        manifest = describe_run(
            context, sources, method=method, parameters=model.get_params(deep=False),
            seed=model.random_state,
        )  # fmt: skip
        _write(model, labels, asked, manifest, notes)
        _finish(model, labels, asked, manifest, notes, log)
        if not is_interrupted(model):
            for left in (checkpoint, checkpoint.with_name(f"{checkpoint.name}.refit")):
                if is_checkpoint(left):
                    left.unlink(missing_ok=True)
    if not model.converged_ and hasattr(model, "best_epoch_"):
        raise typer.Exit(INTERRUPTED)


def _checked_sources(features: str, files: list[str], asked: TrainOptions) -> list[str]:
    """Return all input files, none of which an output may overwrite."""
    extra = filter(None, (asked.ids, asked.gold, asked.valid, asked.valid_truth))
    sources = [features, *files, *extra, *asked.preference_export.sources()]
    log = str(log_of(asked.output))
    check_outputs(
        [asked.labels, asked.workers], [*sources, *asked.reading.key_files], folder=asked.output,
        others=[log, *checked_places([asked.preference_export])], overwrite=asked.overwrite,
        own={asked.output: is_model_file, log: is_log},
    )  # fmt: skip
    return sources


def _named_learner(asked: TrainOptions) -> Any:
    """Return the named method, or the default of a declared type; None if the data decide."""
    if asked.method is not None:
        return configured_method(asked.method, asked.parameters(), asked.seed, "learning")
    declared = asked.reading.declared_type
    return None if declared is None else _default_learner(declared, asked)


def _default_learner(kind: str, asked: TrainOptions) -> Any:
    """Return the default method of a type of labels."""
    name = get_kind(kind).default_learner
    if name is None:
        raise ParameterError(
            f"No method learns from features and {kind} labels; train with --type labels."
        )
    return configured_method(name, asked.parameters(), asked.seed, "learning")


def _rows_are(model: Any) -> str:
    """Return the argument of ``fit`` with the ids of the rows: tasks or items."""
    return str(getattr(model, "rows_are", "tasks"))


def _known(model: Any, method: str, asked: TrainOptions, gold: Any, notes: Notes) -> dict[str, Any]:
    """Return gold and the validation set, for methods that take them."""
    if _rows_are(model) == "tasks":
        valid = read_validation(
            asked.valid, asked.valid_truth, asked.feature_reading, notes, reading=asked.reading
        )  # fmt: skip
        return {"gold": read_gold(gold, notes), "valid": valid}
    if gold is not None or asked.valid is not None or asked.valid_truth is not None:
        raise ParameterError(
            f"--gold, --valid and --valid-truth are about tasks, and {method} scores items; leave "
            "them out."
        )
    return {}


def _write(model: Any, labels: Any, asked: TrainOptions, manifest: Manifest, notes: Notes) -> None:
    """Write the model and the requested tables."""
    tables = [(asked.labels, model.task_columns()), (asked.workers, model.worker_columns())]
    with together():
        model.save(asked.output)
        write_manifest(asked.output, manifest)
        note_written(notes, asked.output, f"saved the model in {asked.output}")
        write(asked.preference_export, Outcome(model, manifest, notes, labels))
        for path, table in tables:
            if path is not None:
                write_result(table, path, manifest, notes, raw=asked.raw_csv)


def _set_checkpoint(model: Any, method: str, asked: TrainOptions, notes: Notes) -> Path:
    """Return the checkpoint's file, next to the model's folder unless a parameter names it."""
    place = Path(asked.output)
    checkpoint = place.parent / f"{place.name}.checkpoint"
    resume = asked.how_to_start()
    if model.get_params().get("checkpoint") is not None:
        checkpoint = Path(model.checkpoint)
    for left in (checkpoint, checkpoint.with_name(f"{checkpoint.name}.refit")):
        if left.exists() and not is_checkpoint(left):
            raise ParameterError(
                f"{left} is in the way and is not a checkpoint; move it away, or give -o another "
                "folder."
            )
    if "checkpoint" not in model.get_params():
        if checkpoint.exists() and resume is None:
            raise ParameterError(
                f"{checkpoint} holds an unfinished training of another method than {method}; "
                "resume it with that command, discard it with --restart, or give -o another folder."
            )
        return checkpoint
    model.checkpoint = str(checkpoint)
    if resume and not checkpoint.exists():
        notes(f"There is no checkpoint {checkpoint} to resume from; training starts at epoch 1.")
    return checkpoint


def _finish(
    model: Any,
    labels: Annotations,
    asked: TrainOptions,
    manifest: Manifest,
    notes: Notes,
    log: TrainingLog,
) -> None:
    """Print the summary, for people or as JSON."""
    log.finish()
    if log.error:
        notes(f"The log {log.path} is incomplete: {log.error}")
    elif log.path.exists():
        notes(f"logged the epochs in {log.path}")
    workers = best_and_worst(model)
    following = next_command(model, asked.output, manifest.command, asked.feature_reading.embed)
    show(workers, following, notes)
    if asked.as_json:
        found = _summary(model, labels, manifest, notes.said, asked.output)
        written = str(log.path) if log.path.exists() else None
        print_json({**found, "workers": workers, "log": written, "next": following})


def read_validation(
    features: str | None,
    truth: str | None,
    columns: FeatureReading,
    notes: Notes,
    option: str = "--valid",
    reading: Reading | None = None,
) -> Any:
    """Return the features and true classes that two options name, or None without them."""
    if features is None and truth is None:
        return None
    if features is None or truth is None:
        raise ParameterError(f"{option} and {option}-truth belong together; give both.")
    table = read_feature_table(columns, features, notes)
    file = KnownFile(truth, f"{option}-truth", reading=reading or Reading())
    known = dict(zip(*file.pairs(), strict=True))
    tasks = map(str, range(table.X.shape[0])) if table.tasks is None else table.tasks.tolist()
    rows = [(row, known[task]) for row, task in enumerate(tasks) if task in known]
    if not rows:
        raise DataError(f"{truth} names none of the tasks of {features}.")
    return table.X[[row for row, _ in rows]], [value for _, value in rows]


def _summary(
    model: Any, labels: Annotations, manifest: Manifest, said: list[str], output: str
) -> dict[str, Any]:
    return {
        "method": manifest.method,
        "parameters": manifest.parameters,
        "seed": manifest.seed,
        "wisecrowd": manifest.wisecrowd,
        "n_tasks": len(model.tasks_),
        "n_workers": labels.n_workers,
        "n_labels": labels.n_annotations,
        **{part: ids for part, ids in labels.vocabularies().items() if part in PARTS},
        "reason": getattr(model, "reason_", None),
        "n_iter": model.n_iter_,
        "best_epoch": getattr(model, "best_epoch_", None),
        "selection": getattr(model, "selection_", None),
        "held_out_score": held_out_score(model),
        "finished": model.converged_,
        "findings": [finding.to_dict() for finding in model.findings_],
        "history": list(model.history_),
        "model": output,
        "notes": said,
    }
