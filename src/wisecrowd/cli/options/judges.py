"""``wisecrowd judges``: whether a judge may replace a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from wisecrowd.cli.options import shared
from wisecrowd.cli.options.group import command, option
from wisecrowd.cli.options.reading import Reading


@dataclass(frozen=True, kw_only=True)
class JudgeOptions:
    """The options of ``wisecrowd judges``."""

    judges: Annotated[
        str | None,
        option("--judges NAME,...", "Workers who judge (default: models by worker_kind)."),
    ] = None
    epsilon: Annotated[
        float,
        option(
            "--epsilon NUMBER",
            "Advantage of a judge for being cheaper: 0.2 if people are experts, 0.15 if trained, "
            "0.1 for a crowd.",
        ),
    ] = 0.1
    cluster: Annotated[
        str | None,
        option(
            "--cluster COLUMN",
            "Column that tasks have in common, such as their text; tests allow for it.",
        ),
    ] = None
    known: Annotated[
        str | None, option("--known FILE", "Known answers, which errors are counted against.")
    ] = None
    swap: Annotated[
        list[str] | None,
        option(
            "--swap JUDGE:WORKER",
            "The worker is the same judge with the sides exchanged; repeatable.",
        ),
    ] = None
    output: Annotated[
        str | None, option("-o --output FOLDER", "Output folder for all tables, as csv.")
    ] = None
    fail_on: shared.FailOn = None
    reading: Reading
    as_json: shared.Json = False
    raw_csv: shared.RawCsv = False
    overwrite: shared.Overwrite = False
    quiet: shared.Quiet = False


@command
def judges(context: typer.Context, files: shared.Files, asked: JudgeOptions) -> None:
    """Compare judges, such as language models, with people.

    Prints for each judge whether it may replace a person, by the alternative annotator test, then
    its agreement with people beside that of people, its leniency, the classes and sides that it
    favours, and how far judges err together. The exit code is 1 only with --fail-on.
    """
    from wisecrowd.cli.run import judges as run

    run.judges(context, files, asked)
