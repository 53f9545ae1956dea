"""``wisecrowd train``: a classifier for new data from features and raw annotations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import options
from wisecrowd.cli.option_groups import command
from wisecrowd.cli.options import Reading

if TYPE_CHECKING:
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.labels import CrowdLabels
    from wisecrowd.learning.training.crowd_classifier import CrowdClassifier
    from wisecrowd.storage.manifest import Manifest

Features = Annotated[
    str,
    typer.Argument(
        metavar="FEATURES",
        help="Features, one row per task: .npy, or a table of numbers with a task column.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The options of ``wisecrowd train``."""

    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FOLDER", help="Output folder for the model.")
    ]
    method: Annotated[
        str,
        typer.Option("-m", "--method", metavar="NAME", help="See `wisecrowd methods --learning`."),
    ] = "agg-net"
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
            "--labels", metavar="FILE", help="Output file for the labels of the training tasks."
        ),
    ] = None
    workers: options.Workers = None
    resume: Annotated[bool, typer.Option("--resume", help="Resume interrupted training.")] = False
    gold_columns: options.GoldColumns = None
    reading: Reading
    as_json: options.PrintJson = False
    raw_csv: options.RawCsv = False
    seed: options.Seed = None
    quiet: options.Quiet = False

    def parameters(self) -> list[str]:
        """Return the parameters of the method, including those with their own option."""
        epochs = [] if self.epochs is None else [f"epochs={self.epochs}"]
        return [*(self.parameter or []), *epochs, *["selection=crowd"] * self.from_crowd]


@command
def train(
    context: typer.Context, features: Features, files: options.Files, asked: TrainOptions
) -> None:
    """Train a classifier on features and the crowd's raw labels.

    Without --ids, the task ids must be the row numbers 0, 1, 2 ... of the features. Ctrl-C keeps
    the best model so far. --resume continues after a crash and reaches the same weights.
    """
    from wisecrowd.cli.inputs import KnownFile, describe_run, read_gold, read_labels
    from wisecrowd.cli.main import INTERRUPTED
    from wisecrowd.cli.outputs import check_outputs, print_json
    from wisecrowd.cli.parameters import configured_method
    from wisecrowd.cli.progress import working
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.io.feature_files import read_features, read_ids

    gold = KnownFile.given(asked.gold, "--gold", asked.gold_columns, asked.reading)
    extra = filter(None, (asked.ids, asked.gold, asked.valid, asked.valid_truth))
    sources = [features, *files, *extra]
    check_outputs(
        [asked.labels, asked.workers], [*sources, *asked.reading.key_files], folder=asked.output
    )
    model: Any = configured_method(asked.method, asked.parameters(), asked.seed, "learning")
    checkpoint = _checkpoint_of(asked.output)
    if "checkpoint" in model.get_params() and model.checkpoint is None:
        model.checkpoint = str(checkpoint)
    with Notes(asked.quiet) as notes:
        labels = read_labels(files, asked.reading, notes)
        table = read_features(features)
        tasks = table.tasks if asked.ids is None else read_ids(asked.ids)
        with working(f"training {asked.method}", notes):
            model.fit(
                table.X, labels, tasks=tasks, resume=asked.resume, gold=read_gold(gold, notes),
                valid=read_validation(asked.valid, asked.valid_truth, reading=asked.reading),
            )  # fmt: skip
        notes(_outcome(asked.method, model, labels))
        if "checkpoint" in model.get_params():
            model.checkpoint = None  # the location in this run does not matter to the next
        manifest = describe_run(
            context, sources, method=asked.method, parameters=model.get_params(deep=False),
            seed=model.random_state,
        )  # fmt: skip
        _write(model, asked, manifest, notes)
        if asked.as_json:
            print_json(_summary(model, labels, manifest, notes.said, asked.output))
        if model.converged_:
            for left in checkpoint.parent.glob(f"{checkpoint.name}*"):
                left.unlink(missing_ok=True)
    if not model.converged_:
        raise typer.Exit(INTERRUPTED)


def _write(model: Any, asked: TrainOptions, manifest: Manifest, notes: Notes) -> None:
    """Write the model and the requested tables."""
    from wisecrowd.cli.outputs import write_result
    from wisecrowd.storage.atomic import together, when_complete
    from wisecrowd.storage.manifest import write_manifest

    tables = [(asked.labels, model.task_columns()), (asked.workers, model.worker_columns())]
    with together():
        model.save(asked.output)
        write_manifest(asked.output, manifest)
        when_complete(lambda: notes(f"saved the model in {asked.output}"))
        for path, table in tables:
            if path is not None:
                write_result(table, path, manifest, notes, raw=asked.raw_csv)


def _checkpoint_of(output: str) -> Any:
    """Return the checkpoint's file, next to the model's folder, which is created at the end."""
    from pathlib import Path

    place = Path(output)
    return place.parent / f"{place.name}.checkpoint"


def read_validation(
    features: str | None,
    truth: str | None,
    option: str = "--valid",
    reading: Reading | None = None,
) -> Any:
    """Return the features and true classes that two options name, or None without them."""
    from wisecrowd.cli.inputs import KnownFile
    from wisecrowd.core.exceptions import DataError, ParameterError
    from wisecrowd.io.feature_files import read_features

    if features is None and truth is None:
        return None
    if features is None or truth is None:
        raise ParameterError(f"{option} and {option}-truth belong together; give both.")
    table = read_features(features)
    file = KnownFile(truth, f"{option}-truth", reading=reading or Reading())
    known = dict(zip(*file.pairs(), strict=True))
    tasks = map(str, range(len(table.X))) if table.tasks is None else table.tasks.tolist()
    rows = [(row, known[task]) for row, task in enumerate(tasks) if task in known]
    if not rows:
        raise DataError(f"{truth} names none of the tasks of {features}.")
    return table.X[[row for row, _ in rows]], [value for _, value in rows]


def _outcome(method: str, model: CrowdClassifier, labels: CrowdLabels) -> str:
    text = (
        f"{method}: {len(model.tasks_)} tasks, {labels.n_workers} workers, "
        f"{labels.n_classes} classes, {labels.n_annotations} labels; {model.n_iter_} "
    )
    chosen = getattr(model, "selection_", None)
    text += "iterations" if chosen is None else "epochs"
    if chosen in ("crowd", "gold"):
        text += f", epoch {model.best_epoch_} chosen by "
        text += "the crowd's held-out labels" if chosen == "crowd" else "the validation set"
    return text


def _summary(
    model: CrowdClassifier,
    labels: CrowdLabels,
    manifest: Manifest,
    said: list[str],
    output: str,
) -> dict[str, Any]:
    return {
        "method": manifest.method,
        "parameters": manifest.parameters,
        "seed": manifest.seed,
        "wisecrowd": manifest.wisecrowd,
        "n_tasks": len(model.tasks_),
        "n_workers": labels.n_workers,
        "n_labels": labels.n_annotations,
        "classes": labels.classes,
        "n_iter": model.n_iter_,
        "best_epoch": getattr(model, "best_epoch_", None),
        "finished": model.converged_,
        "history": list(model.history_),
        "model": output,
        "notes": said,
    }
