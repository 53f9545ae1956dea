"""``wisecrowd train``: a predictor for new data from features and raw annotations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import options
from wisecrowd.cli.feature_reading import FeatureReading
from wisecrowd.cli.option_groups import command
from wisecrowd.cli.options import Reading
from wisecrowd.cli.preference_export import PreferenceExport

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wisecrowd.cli.terminal import Notes
    from wisecrowd.cli.training_log import TrainingLog
    from wisecrowd.core.annotations import Annotations
    from wisecrowd.io.feature_files import FeatureTable
    from wisecrowd.storage.manifest import Manifest

PARTS = ("classes", "items")  # vocabularies that the summary lists
Features = Annotated[
    str,
    typer.Argument(
        metavar="FEATURES",
        help="Features, a row per task or item: .npy, .npz, a table with their ids, a Hugging Face "
        "data set, or texts (with --embed).",
    ),
]


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The options of ``wisecrowd train``."""

    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FOLDER", help="Output folder for the model.")
    ]
    method: Annotated[
        str | None,
        typer.Option(
            "-m", "--method", metavar="NAME",
            help="See `wisecrowd methods --learning` (default: auto for classes).",
        ),
    ] = None  # fmt: skip
    parameter: options.Parameters = None
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, metavar="N")] = None
    ids: options.Ids = None
    gold: options.Gold = None
    from_crowd: Annotated[
        bool,
        typer.Option(
            "--valid-from-crowd", help="Choose the epoch by held-out labels; needs no gold."
        ),
    ] = False
    valid: Annotated[
        str | None,
        typer.Option("--valid", metavar="FILE", help="Validation features; needs --valid-truth."),
    ] = None
    valid_truth: Annotated[
        str | None,
        typer.Option("--valid-truth", metavar="FILE", help="True classes of the validation tasks."),
    ] = None
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels-to", metavar="FILE", help="Output file for the labels of the training tasks."
        ),
    ] = None
    workers: options.Workers = None
    resume: Annotated[bool, typer.Option("--resume", help="Resume interrupted training.")] = False
    restart: Annotated[
        bool, typer.Option("--restart", help="Discard interrupted training and start again.")
    ] = False
    gold_columns: options.GoldColumns = None
    preference_export: PreferenceExport
    feature_reading: FeatureReading
    reading: Reading
    as_json: options.PrintJson = False
    raw_csv: options.RawCsv = False
    overwrite: options.Overwrite = False
    seed: options.Seed = None
    quiet: options.Quiet = False

    def parameters(self) -> list[str]:
        """Return the parameters of the method, including those with their own option."""
        epochs = [] if self.epochs is None else [f"epochs={self.epochs}"]
        return [*(self.parameter or []), *epochs, *["selection=crowd"] * self.from_crowd]

    def how_to_start(self) -> bool | None:
        """Return whether to resume; None refuses to overwrite what could be resumed."""
        from wisecrowd.core.exceptions import ParameterError

        if self.resume and self.restart:
            raise ParameterError("--resume and --restart exclude each other; give one of them.")
        return self.resume or (False if self.restart else None)


@command
def train(
    context: typer.Context, features: Features, files: options.Files, asked: TrainOptions
) -> None:
    """Train a predictor on features and the crowd's raw labels.

    It predicts classes or, with --type numbers, numbers; of votes on pairs, the score of an item.
    Without --ids, the task ids must be the row numbers 0, 1, 2 ... of the features. Every epoch is
    logged in FOLDER.log.jsonl. Ctrl-C keeps the best model so far. --resume continues after it, or
    after a crash, and reaches the same weights. torchrun trains on several processes.
    """
    from wisecrowd.api import type_for
    from wisecrowd.cli.inputs import KnownFile, describe_run, read_labels
    from wisecrowd.cli.main import INTERRUPTED
    from wisecrowd.cli.parallel_training import all_processes, leads
    from wisecrowd.cli.progress import working
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.cli.training_log import TrainingLog, log_of
    from wisecrowd.cli.training_summary import is_interrupted, outcome
    from wisecrowd.core.kinds import kind_of
    from wisecrowd.core.registry import kebab_case
    from wisecrowd.io.feature_files import ids_of_rows
    from wisecrowd.io.misreadings import ONE_WORKER, WORKER_PER_TASK
    from wisecrowd.storage.checkpoint_files import is_checkpoint

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
        table = asked.feature_reading.read(features, notes)
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
    from wisecrowd.cli.outputs import check_outputs
    from wisecrowd.cli.training_log import is_log, log_of
    from wisecrowd.storage.models import is_model_file

    extra = filter(None, (asked.ids, asked.gold, asked.valid, asked.valid_truth))
    sources = [features, *files, *extra, *asked.preference_export.sources()]
    log = str(log_of(asked.output))
    check_outputs(
        [asked.labels, asked.workers], [*sources, *asked.reading.key_files], folder=asked.output,
        others=[log, *asked.preference_export.places()], overwrite=asked.overwrite,
        own={asked.output: is_model_file, log: is_log},
    )  # fmt: skip
    return sources


def _named_learner(asked: TrainOptions) -> Any:
    """Return the named method, or the default of a declared type; None if the data decide."""
    from wisecrowd.cli.parameters import configured_method

    if asked.method is not None:
        return configured_method(asked.method, asked.parameters(), asked.seed, "learning")
    declared = asked.reading.declared_type
    return None if declared is None else _default_learner(declared, asked)


def _default_learner(kind: str, asked: TrainOptions) -> Any:
    """Return the default method of a type of labels."""
    from wisecrowd.cli.parameters import configured_method
    from wisecrowd.core.exceptions import ParameterError
    from wisecrowd.core.kinds import get_kind

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
    from wisecrowd.cli.inputs import read_gold
    from wisecrowd.core.exceptions import ParameterError

    if _rows_are(model) == "tasks":
        valid = read_validation(
            asked.valid, asked.valid_truth, reading=asked.reading,
            read=lambda path: asked.feature_reading.read(path, notes),
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
    from wisecrowd.cli.outputs import write_result
    from wisecrowd.cli.replacing import note_written
    from wisecrowd.storage.atomic import together
    from wisecrowd.storage.manifest import write_manifest

    tables = [(asked.labels, model.task_columns()), (asked.workers, model.worker_columns())]
    with together():
        model.save(asked.output)
        write_manifest(asked.output, manifest)
        note_written(notes, asked.output, f"saved the model in {asked.output}")
        asked.preference_export.write(model, labels, manifest, notes)
        for path, table in tables:
            if path is not None:
                write_result(table, path, manifest, notes, raw=asked.raw_csv)


def _set_checkpoint(model: Any, method: str, asked: TrainOptions, notes: Notes) -> Path:
    """Return the checkpoint's file, next to the model's folder unless a parameter names it."""
    from pathlib import Path

    from wisecrowd.core.exceptions import ParameterError
    from wisecrowd.storage.checkpoint_files import is_checkpoint

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
    from wisecrowd.cli.outputs import print_json
    from wisecrowd.cli.training_summary import best_and_worst, next_command, show

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
    option: str = "--valid",
    reading: Reading | None = None,
    read: Callable[[str], FeatureTable] | None = None,
) -> Any:
    """Return the features and true classes that two options name, or None without them."""
    from wisecrowd.cli.inputs import KnownFile
    from wisecrowd.core.exceptions import DataError, ParameterError
    from wisecrowd.io.feature_files import read_features

    if features is None and truth is None:
        return None
    if features is None or truth is None:
        raise ParameterError(f"{option} and {option}-truth belong together; give both.")
    table = (read or read_features)(features)
    file = KnownFile(truth, f"{option}-truth", reading=reading or Reading())
    known = dict(zip(*file.pairs(), strict=True))
    tasks = map(str, range(table.X.shape[0])) if table.tasks is None else table.tasks.tolist()
    rows = [(row, known[task]) for row, task in enumerate(tasks) if task in known]
    if not rows:
        raise DataError(f"{truth} names none of the tasks of {features}.")
    return table.X[[row for row, _ in rows]], [value for _, value in rows]


def _summary(
    model: Any,
    labels: Annotations,
    manifest: Manifest,
    said: list[str],
    output: str,
) -> dict[str, Any]:
    from wisecrowd.cli.training_summary import held_out_score

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
