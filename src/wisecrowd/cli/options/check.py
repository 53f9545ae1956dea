"""``wisecrowd check``: which tasks a person should answer, and what the answers say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from wisecrowd.cli.options import shared
from wisecrowd.cli.options.group import command, option
from wisecrowd.cli.options.reading import Reading, Running


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The options of ``wisecrowd check``."""

    n: Annotated[int, option("-n N", "Number of tasks in the list.", min=1)] = 60
    output: Annotated[
        str | None,
        option(
            "-o --output FILE",
            "Output file (default: standard output); a list in FILE.json is for Label Studio.",
        ),
    ] = None
    checked: Annotated[
        str | None, option("--checked FILE", "The list with the answers: measure the accuracy.")
    ] = None
    labels: Annotated[
        str | None,
        option("--labels FILE", "Results to check instead of a fit: task, label, confidence."),
    ] = None
    floor: Annotated[
        float | None,
        option("--floor SHARE", "Exit with code 1 if the lower limit is below this share.",
               min=0.0, max=1.0),
    ] = None  # fmt: skip
    looks: Annotated[
        str | None,
        option("--looks N,N,...", "Sizes at which to read the result before the list is complete."),
    ] = None
    anytime: Annotated[
        bool, option("--anytime", "Read the result after any number of answers; wider intervals.")
    ] = False
    tasks: Annotated[
        str | None,
        option("--tasks FILE", "What tasks look like, for the list: task, and text or url."),
    ] = None
    method: shared.Method = "auto"
    parameter: shared.Parameters = None
    reading: Reading
    as_json: shared.Json = False
    raw_csv: shared.RawCsv = False
    overwrite: shared.Overwrite = False
    running: Running


@command
def check(context: typer.Context, files: shared.Files, asked: CheckOptions) -> None:
    """List tasks for a person to answer, and measure by the answers how many results are right.

    The list is in random order, does not show the results, and has tasks of every confidence. Fill
    in its empty column and give it to --checked. The interval holds for any crowd, because it
    depends only on how the tasks were drawn.
    """
    from wisecrowd.cli.run import check as run

    run.check(context, files, asked)
