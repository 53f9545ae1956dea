"""Commands that give scores: ``compare`` and ``evaluate``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from wisecrowd.cli.options import shared
from wisecrowd.cli.options.features import FeatureFiles, FeatureReading
from wisecrowd.cli.options.group import command, option
from wisecrowd.cli.options.groups import GroupOptions
from wisecrowd.cli.options.reading import Reading, Running


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """The options of ``wisecrowd compare``."""

    truth: shared.Truth = None
    output: shared.Output = None
    methods: Annotated[
        str | None, option("--methods A,B,...", "Methods to compare (default: all).")
    ] = None
    learning: FeatureFiles
    feature_reading: FeatureReading
    parameter: shared.Parameters = None
    truth_columns: shared.TruthColumns = None
    reading: Reading
    as_json: shared.Json = False
    overwrite: shared.Overwrite = False
    running: Running


@command
def compare(context: typer.Context, files: shared.Files, asked: CompareOptions) -> None:
    """Run every method and score it.

    With --truth, scores labels and probabilities against the truth. Without it, hides some labels,
    fits each method to the others and ranks methods by how well they predict the hidden ones; one
    method is recommended.

    With --features, compares the methods that train a classifier, with the same network and budget
    (-p epochs=20 applies to all). They are ranked by --test-truth, else by --truth, else by the
    held-out likelihood.
    """
    from wisecrowd.cli.run import compare as run

    run.compare(context, files, asked)


Labels = Annotated[
    str, typer.Argument(metavar="LABELS", help="Table with a task and a label column.")
]


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """The options of ``wisecrowd evaluate``."""

    truth: Annotated[str, option("--truth FILE", "True classes for scoring: task, label.")]
    output: shared.Output = None
    truth_columns: shared.TruthColumns = None
    workers: Annotated[
        bool, option("--workers", "Score the workers of a file of answers: task, worker, label.")
    ] = False
    claimed: Annotated[
        str | None,
        option(
            "--claimed FILE|MODEL", "What --workers compares: a table of workers, or a saved model."
        ),
    ] = None
    task: shared.TaskColumn = None
    worker: shared.WorkerColumn = None
    label: shared.LabelColumn = None
    type: shared.Type = None
    scale: shared.Scale = None
    groups: GroupOptions
    as_json: shared.Json = False
    overwrite: shared.Overwrite = False
    quiet: shared.Quiet = False


@command
def evaluate(context: typer.Context, labels: Labels, asked: EvaluateOptions) -> None:
    """Score a file of labels, or of answers of another kind, against the truth.

    The columns tell what the file holds: task and label; task and value; item and score; item and
    cluster; task, start, end and label (spans); task and labels (sets); task, x, y, width and
    height (boxes); task and mask; task and text. The truth has the same columns. That of spans may
    have the tags of a task in each row, that of sets a|b or a JSON list, and that of boxes may be
    COCO-style JSON. Texts are scored by word and character error rate.

    Probabilities in the file are scored too. Columns p_CLASS give log loss, Brier score and
    calibration error (ECE). A confidence column alone gives all three for two classes, and the
    calibration error for more. --scale, or --type ordered, gives the mean absolute error (MAE) and
    the quadratic weighted kappa of ordered classes. --attributes compares groups of tasks.

    --workers scores workers instead: the file has the columns task, worker and label. --claimed
    compares their accuracy with what a table of workers or a model claims.
    """
    from wisecrowd.cli.run import evaluate as run

    run.evaluate(context, labels, asked)
