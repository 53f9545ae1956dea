"""``wisecrowd estimate`` and ``wisecrowd plan``: what people would say, and how much that takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from wisecrowd.cli.options import shared
from wisecrowd.cli.options.group import command, option
from wisecrowd.cli.options.reading import Reading, Running

KnownColumns = Annotated[
    str | None, option("--known-columns TASK,LABEL", "Column names of --known.")
]
By = Annotated[
    str | None,
    option(
        "--by COLUMN",
        "Groups of tasks: a column of --attributes or of the answers; of pairs: item.",
    ),
]
Cluster = Annotated[
    str | None,
    option("--cluster COLUMN", "Tasks that may err together, such as those about one text."),
]
Attributes = Annotated[
    str | None, option("--attributes FILE", "Attributes of tasks: task, and one column for each.")
]


@dataclass(frozen=True, kw_only=True)
class EstimateOptions:
    """The options of ``wisecrowd estimate``."""

    known: Annotated[
        str,
        option(
            "--known FILE",
            "Answers of a person to tasks drawn at random, or a check list: task, label.",
        ),
    ]
    output: shared.Output = None
    known_columns: KnownColumns = None
    of: Annotated[
        str | None,
        option(
            "--of shares|mean|win-rate",
            "What to estimate (default: shares of classes, mean of numbers, win rate of pairs).",
        ),
    ] = None
    by: By = None
    cluster: Cluster = None
    attributes: Attributes = None
    method: Annotated[
        str | None, option("-m --method NAME", "Method of the fit; see `wisecrowd methods`.")
    ] = None
    parameter: shared.Parameters = None
    model: Annotated[
        str | None, option("--model MODEL", "Saved fit of these answers that has seen no gold.")
    ] = None
    level: Annotated[float, option("--level NUMBER", "Level of the intervals.")] = 0.95
    floor: Annotated[
        str | None,
        option(
            "--floor [QUANTITY=]NUMBER",
            "Exit with code 1 if the lower limit of this quantity is less in any group.",
        ),
    ] = None
    reading: Reading
    as_json: shared.Json = False
    overwrite: shared.Overwrite = False
    running: Running


@command
def estimate(context: typer.Context, files: shared.Files, asked: EstimateOptions) -> None:
    """Estimate what people would say of all tasks, from the few that they have judged.

    Gives the shares of classes, the mean of numbers or the win rate of pairs under human judgement,
    with valid intervals. The labels of all tasks make these narrower, and the known answers remove
    the bias of the labels. Beside each estimate are that of the known answers alone, and what the
    labels say uncorrected. The labels are fitted without the known answers.
    """
    from wisecrowd.cli.run import estimate as run

    run.estimate(context, files, asked)
