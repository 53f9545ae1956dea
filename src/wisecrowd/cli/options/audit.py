"""``wisecrowd audit``: problems of a crowd."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from wisecrowd.cli.options import shared
from wisecrowd.cli.options.group import command, option
from wisecrowd.cli.options.groups import GroupOptions
from wisecrowd.cli.options.reading import Reading, Running


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """The options of ``wisecrowd audit``."""

    gold: shared.Gold = None
    output: Annotated[
        str | None,
        option("-o --output FOLDER", "Output folder for the findings and all tables, as csv."),
    ] = None
    fail_on: shared.FailOn = None
    prune_to: Annotated[
        str | None, option("--prune-to FILE", "Output file for the cleaned labels.")
    ] = None
    prune: Annotated[
        list[str] | None,
        option(
            "--prune clones|collusion|spammers",
            "What --prune-to removes, in this order; copies become one worker; repeatable.",
        ),
    ] = None
    unlabelled: Annotated[
        str,
        option(
            "--unlabelled refuse|spare|drop",
            "If pruning would leave tasks without labels: stop, spare their workers, or drop the "
            "tasks.",
        ),
    ] = "refuse"
    part: Annotated[
        list[str] | None, option("--part NAME", "Run only this part of the audit; repeatable.")
    ] = None
    gold_columns: shared.GoldColumns = None
    groups: GroupOptions
    reading: Reading
    as_json: shared.Json = False
    raw_csv: shared.RawCsv = False
    overwrite: shared.Overwrite = False
    running: Running


@command
def audit(context: typer.Context, files: shared.Files, asked: AuditOptions) -> None:
    """Find spammers, colluders and other problems of a crowd.

    Prints the findings, most severe first. The exit code is 1 only with --fail-on.
    """
    from wisecrowd.cli.run import audit as run

    run.audit(context, files, asked)
