"""Commands about features: ``train`` makes a predictor, ``predict`` uses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from wisecrowd.cli.options import shared
from wisecrowd.cli.options.exports import Exports, PreferenceExport
from wisecrowd.cli.options.features import FeatureReading
from wisecrowd.cli.options.group import command, option
from wisecrowd.cli.options.reading import Reading
from wisecrowd.core.exceptions import ParameterError

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

    output: Annotated[str, option("-o --output FOLDER", "Output folder for the model.")]
    method: Annotated[
        str | None,
        option(
            "-m --method NAME", "See `wisecrowd methods --learning` (default: auto for classes)."
        ),
    ] = None
    parameter: shared.Parameters = None
    epochs: Annotated[int | None, option("--epochs N", min=1)] = None
    ids: shared.Ids = None
    gold: shared.Gold = None
    from_crowd: Annotated[
        bool, option("--valid-from-crowd", "Choose the epoch by held-out labels; needs no gold.")
    ] = False
    valid: Annotated[
        str | None, option("--valid FILE", "Validation features; needs --valid-truth.")
    ] = None
    valid_truth: Annotated[
        str | None, option("--valid-truth FILE", "True classes of the validation tasks.")
    ] = None
    labels: Annotated[
        str | None, option("--labels-to FILE", "Output file for the labels of the training tasks.")
    ] = None
    workers: shared.Workers = None
    resume: Annotated[bool, option("--resume", "Resume interrupted training.")] = False
    restart: Annotated[
        bool, option("--restart", "Discard interrupted training and start again.")
    ] = False
    gold_columns: shared.GoldColumns = None
    preference_export: PreferenceExport
    feature_reading: FeatureReading
    reading: Reading
    as_json: shared.PrintJson = False
    raw_csv: shared.RawCsv = False
    overwrite: shared.Overwrite = False
    seed: shared.Seed = None
    quiet: shared.Quiet = False

    def parameters(self) -> list[str]:
        """Return the parameters of the method, including those with their own option."""
        epochs = [] if self.epochs is None else [f"epochs={self.epochs}"]
        return [*(self.parameter or []), *epochs, *["selection=crowd"] * self.from_crowd]

    def how_to_start(self) -> bool | None:
        """Return whether to resume; None refuses to overwrite what could be resumed."""
        if self.resume and self.restart:
            raise ParameterError("--resume and --restart exclude each other; give one of them.")
        return self.resume or (False if self.restart else None)


@command
def train(
    context: typer.Context, features: Features, files: shared.Files, asked: TrainOptions
) -> None:
    """Train a predictor on features and the crowd's raw labels.

    It predicts classes or, with --type numbers, numbers; of votes on pairs, the score of an item.
    Without --ids, the task ids must be the row numbers 0, 1, 2 ... of the features. Every epoch is
    logged in FOLDER.log.jsonl. Ctrl-C keeps the best model so far. --resume continues after it, or
    after a crash, and reaches the same weights. torchrun trains on several processes.
    """
    from wisecrowd.cli.run import train as run

    run.train(context, features, files, asked)


Model = Annotated[str, typer.Argument(metavar="MODEL", help="Folder written by train.")]

NewFeatures = Annotated[
    str, typer.Argument(metavar="FEATURES", help="Features, a row per task or item, as for train.")
]


@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """The options of ``wisecrowd predict``."""

    output: shared.Output = None
    answers: Annotated[
        str | None, option("--answers FILE", "Labels of these tasks by workers of the fit.")
    ] = None
    ids: shared.Ids = None
    soft: shared.Soft = False
    exports: Exports
    feature_reading: FeatureReading
    reading: Reading
    as_json: shared.Json = False
    raw_csv: shared.RawCsv = False
    overwrite: shared.Overwrite = False
    quiet: shared.Quiet = False


@command
def predict(
    context: typer.Context, model: Model, features: NewFeatures, asked: PredictOptions
) -> None:
    """Predict the class, number or score of every row of the features.

    The result has one row per task: task, label, confidence for classes; task, value, low, high for
    numbers; item, score for models of pairs. With --answers, the prediction uses features and
    labels.
    """
    from wisecrowd.cli.run import predict as run

    run.predict(context, model, features, asked)
