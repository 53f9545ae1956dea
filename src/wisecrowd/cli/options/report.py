"""``wisecrowd report``: one HTML file about a crowd."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from wisecrowd.cli.options import shared
from wisecrowd.cli.options.group import command, option
from wisecrowd.cli.options.groups import ReportGroups
from wisecrowd.cli.options.reading import Reading, Running

DEFAULT = "report.html"


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """The options of ``wisecrowd report``."""

    output: Annotated[
        str | None, option("-o --output FILE", f"Output file (default: {DEFAULT}).")
    ] = None
    method: shared.Method = "auto"
    parameter: shared.Parameters = None
    truth: shared.Truth = None
    gold: shared.Gold = None
    checked: Annotated[
        str | None,
        option("--checked FILE", "A check list with answers, which measures the accuracy."),
    ] = None
    title: Annotated[str | None, option("--title TEXT", "Title of the page.")] = None
    against: Annotated[
        str | None,
        option("--against FILE", "Summary of an earlier report (--json): show what changed since."),
    ] = None
    markdown: Annotated[
        str | None,
        option(
            "--markdown FILE", "Write a summary as Markdown as well, such as for a pull request."
        ),
    ] = None
    fail_on: shared.FailOn = None
    tasks: Annotated[
        str | None, option("--tasks FILE", "What tasks look like: task, and text or url to link.")
    ] = None
    task_url: Annotated[
        str | None,
        option("--task-url URL", "Address of a task on its platform, with {task} for its id."),
    ] = None
    tables: Annotated[
        bool, option("--tables", "Also write whole tables, which the page cuts, as parquet.")
    ] = False
    judges: Annotated[
        str | None,
        option(
            "--judges NAME,...|models",
            "Report on judges, such as language models, beside people; see wisecrowd judges.",
        ),
    ] = None
    epsilon: Annotated[
        float | None,
        option("--epsilon NUMBER", "Advantage of a judge over a person (default: 0.1)."),
    ] = None
    cluster: Annotated[
        str | None,
        option("--cluster COLUMN", "Column that tasks have in common, such as their text."),
    ] = None
    cost: Annotated[
        str | None, option("--cost NUMBER|COLUMN", "Cost of a label: a number, or its column.")
    ] = None
    truth_columns: shared.TruthColumns = None
    gold_columns: shared.GoldColumns = None
    groups: ReportGroups
    reading: Reading
    as_json: Annotated[
        bool, option("--json", "Print the summary as JSON; -o FILE.html writes a page.")
    ] = False
    overwrite: shared.Overwrite = False
    running: Running


@command
def report(context: typer.Context, files: shared.Files, asked: ReportOptions) -> None:
    """Write a report on a crowd as one HTML file.

    The file needs no network. It shows accuracy, next steps, workers, hard tasks, collusion and
    more. With --judges it compares judges with people instead.
    """
    from wisecrowd.cli.run import report as run

    run.report(context, files, asked)
