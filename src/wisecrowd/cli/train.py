"""``wisecrowd train``: a classifier for new data from features and raw annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import options
from wisecrowd.cli.option_groups import command
from wisecrowd.cli.options import Reading

if TYPE_CHECKING:
    from wisecrowd.cli.inputs import KnownFile
    from wisecrowd.core.labels import CrowdLabels
    from wisecrowd.learning.base import CrowdClassifier
    from wisecrowd.storage.manifest import Manifest

Features = Annotated[
    str,
    typer.Argument(
        metavar="FEATURES",
        help="One row per task: .npy, or a table of numbers with the task in one column.",
    ),
]
Method = Annotated[
    str,
    typer.Option("-m", "--method", metavar="NAME", help="See `wisecrowd methods --learning`."),
]
Model = Annotated[
    str, typer.Option("-o", "--output", metavar="FOLDER", help="Where to save the model.")
]
Ids = Annotated[
    str | None,
    typer.Option("--ids", metavar="FILE", help="The task of each row of the features."),
]
Gold = Annotated[
    str | None, typer.Option("--gold", metavar="FILE", help="Known classes: task, label.")
]
FromCrowd = Annotated[
    bool,
    typer.Option(
        "--valid-from-crowd", help="Choose the epoch by the labels of held-out tasks: no gold."
    ),
]
ValidFeatures = Annotated[
    str | None, typer.Option("--valid", metavar="FILE", help="Features to choose the epoch by ...")
]
ValidTruth = Annotated[
    str | None, typer.Option("--valid-truth", metavar="FILE", help="... and their true classes.")
]
Labels = Annotated[
    str | None,
    typer.Option("--labels", metavar="FILE", help="Write the labels of the training tasks here."),
]
Workers = Annotated[
    str | None,
    typer.Option("--workers", metavar="FILE", help="Write the quality of every worker here."),
]
Epochs = Annotated[int | None, typer.Option("--epochs", min=1, metavar="N")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on where an interrupted training stood.")
]


@command
def train(
    context: typer.Context,
    features: Features,
    files: options.Files,
    output: Model,
    *,
    method: Method = "agg-net",
    parameter: options.Parameters = None,
    epochs: Epochs = None,
    ids: Ids = None,
    gold: Gold = None,
    from_crowd: FromCrowd = False,
    valid: ValidFeatures = None,
    valid_truth: ValidTruth = None,
    labels: Labels = None,
    workers: Workers = None,
    resume: Resume = False,
    gold_columns: options.GoldColumns = None,
    reading: Reading,
    as_json: options.PrintJson = False,
    raw_csv: options.RawCsv = False,
    seed: options.Seed = None,
    quiet: options.Quiet = False,
) -> None:
    """Train a classifier on features and the crowd's raw labels.

    Without --ids the tasks must be the row numbers 0, 1, 2 ... of the features. Ctrl-C keeps the
    best model so far; --resume goes on after a crash, to the same weights.
    """
    from wisecrowd.cli.inputs import KnownFile

    parameters = list(parameter or [])
    parameters += [] if epochs is None else [f"epochs={epochs}"]
    parameters += ["selection=crowd"] if from_crowd else []
    tables = {"labels": labels, "workers": workers}
    _run(
        context.obj, features, files, reading, output, tables,
        method=method, parameters=parameters, ids=ids,
        gold=KnownFile.given(gold, "--gold", gold_columns, reading),
        valid=(valid, valid_truth), resume=resume, as_json=as_json, raw=raw_csv, seed=seed,
        quiet=quiet,
    )  # fmt: skip


def _run(
    command: list[str],
    features: str,
    files: list[str],
    reading: Reading,
    output: str,
    tables: dict[str, str | None],
    *,
    method: str,
    parameters: list[str],
    ids: str | None,
    gold: KnownFile | None,
    valid: tuple[str | None, str | None],
    resume: bool,
    as_json: bool,
    raw: bool,
    seed: int | None,
    quiet: bool,
) -> None:
    from wisecrowd.cli.inputs import read_gold, read_labels, source_files
    from wisecrowd.cli.outputs import check_outputs, print_json, write_result
    from wisecrowd.cli.parameters import configured_method
    from wisecrowd.cli.progress import working
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.io.features import read_features, read_ids
    from wisecrowd.storage.atomic import together, when_complete
    from wisecrowd.storage.manifest import Manifest, write_manifest

    known = None if gold is None else gold.path
    given = [features, *files, *filter(None, (ids, known, *valid))]
    check_outputs(list(tables.values()), [*given, *reading.key_files], folder=output)
    model: Any = configured_method(method, parameters, seed, "learning")
    checkpoint = _checkpoint_of(output)
    if "checkpoint" in model.get_params() and model.checkpoint is None:
        model.checkpoint = str(checkpoint)
    with Notes(quiet) as notes:
        labels = read_labels(files, reading, notes)
        table = read_features(features)
        tasks = table.tasks if ids is None else read_ids(ids)
        with working(f"training {method}", quiet=quiet):
            model.fit(
                table.X, labels, tasks=tasks, resume=resume,
                gold=None if gold is None else read_gold(gold, notes),
                valid=read_validation(*valid, reading=reading),
            )  # fmt: skip
        notes(_outcome(method, model, labels))
        if "checkpoint" in model.get_params():
            model.checkpoint = None  # where this run kept it says nothing to the next
        manifest = Manifest.describe(
            method=method,
            parameters=model.get_params(deep=False),
            seed=model.random_state,
            inputs=source_files(given),
            command=["wisecrowd", *command],
        )
        found = {"labels": model.task_columns(), "workers": model.worker_columns()}
        with together():
            model.save(output)
            write_manifest(output, manifest)
            when_complete(lambda: notes(f"saved the model in {output}"))
            for name, path in tables.items():
                if path is not None:
                    write_result(found[name], path, manifest, notes, raw=raw)
        if as_json:
            print_json(_summary(model, labels, manifest, notes.said, output))
        if model.converged_:
            for left in checkpoint.parent.glob(f"{checkpoint.name}*"):
                left.unlink(missing_ok=True)
    if not model.converged_:
        from wisecrowd.cli.main import INTERRUPTED

        raise typer.Exit(INTERRUPTED)


def _checkpoint_of(output: str) -> Any:
    """Return the checkpoint's file: beside the model's folder, which appears when it is done."""
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
    from wisecrowd.cli.inputs import KnownFile, read_gold
    from wisecrowd.core.exceptions import DataError, ParameterError
    from wisecrowd.io.features import read_features

    if features is None and truth is None:
        return None
    if features is None or truth is None:
        raise ParameterError(f"{option} and {option}-truth belong together; give both.")
    table = read_features(features)
    known = read_gold(KnownFile(truth, f"{option}-truth", reading=reading or Reading()))
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
