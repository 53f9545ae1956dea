"""``wisecrowd plan``: how many checks, judgements and labels are needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from wisecrowd.cli.options import shared
from wisecrowd.cli.options.estimate import Attributes, By, Cluster, KnownColumns
from wisecrowd.cli.options.group import command, option
from wisecrowd.cli.options.reading import Reading, Running

Pilot = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE",
        help="Annotations of a pilot, in any form that `wisecrowd aggregate` takes.",
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """The options of ``wisecrowd plan``."""

    known: Annotated[
        str | None,
        option("--known FILE", "Answers of a person to tasks of the pilot: task, label."),
    ] = None
    known_columns: KnownColumns = None
    width: Annotated[
        str | None,
        option("--width W,...", "Half widths of intervals: how many tasks must be checked?"),
    ] = None
    separate: Annotated[
        str | None,
        option(
            "--separate D,...", "Differences of two systems: how many judgements of each show them?"
        ),
    ] = None
    labels: Annotated[
        str | None,
        option("--labels N,...", "Labels per task: how often would a vote of them be right?"),
    ] = None
    epsilon: Annotated[
        str | None,
        option("--epsilon E,...", "Advantages of the test of judges, 0.1 or 0.15: how many tasks?"),
    ] = None
    of: Annotated[str | None, option("--of shares|mean|win-rate", "What people are asked for.")] = (
        None
    )
    by: By = None
    cluster: Cluster = None
    attributes: Attributes = None
    power: Annotated[
        float, option("--power NUMBER", "Probability that a comparison finds the difference.")
    ] = 0.8
    level: Annotated[float, option("--level NUMBER", "Level of the intervals.")] = 0.95
    output: shared.Output = None
    reading: Reading
    as_json: shared.Json = False
    overwrite: shared.Overwrite = False
    running: Running


@command
def plan(context: typer.Context, asked: PlanOptions, files: Pilot = None) -> None:
    """Plan how many tasks to check, judgements to collect and labels to buy.

    A pilot, answers with some known ones, replaces assumptions by what was measured. --by and
    --cluster name the system of each task and the text that it is about, so that --separate
    compares systems on the same texts. With known answers, --width alone also plans judgements for
    differences of twice the width, and votes. Without any question, plans checks and the test of
    judges.
    """
    from wisecrowd.cli.run import plan as run

    run.plan(context, files or [], asked)
