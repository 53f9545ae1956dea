"""``wisecrowd agreement``: how far workers agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from wisecrowd.cli.options import shared
from wisecrowd.cli.options.group import command, option
from wisecrowd.cli.options.reading import Reading


@dataclass(frozen=True, kw_only=True)
class AgreementOptions:
    """The options of ``wisecrowd agreement``."""

    output: shared.Output = None
    level: Annotated[
        str | None,
        option(
            "--level nominal|ordinal|interval",
            "Level of measurement of classes (default: ordinal if they are ordered, else nominal).",
        ),
    ] = None
    pairs: Annotated[bool, option("--pairs", "Compare each pair of workers too.")] = False
    compare: Annotated[
        str | None,
        option(
            "--compare COLUMN",
            "Compare groups of workers: kind (human, model), or a column of --worker-attributes.",
        ),
    ] = None
    worker_attributes: Annotated[
        str | None, option("--worker-attributes FILE", "Attributes of workers: worker, ...")
    ] = None
    floor: Annotated[
        float | None,
        option(
            "--floor NUMBER",
            "Exit with code 1 if the first coefficient may be lower with other workers: if its "
            "interval begins below.",
        ),
    ] = None
    reading: Reading
    as_json: shared.Json = False
    overwrite: shared.Overwrite = False
    quiet: shared.Quiet = False


@command
def agreement(context: typer.Context, files: shared.Files, asked: AgreementOptions) -> None:
    """Measure how far workers agree, beyond chance, each coefficient with two intervals.

    "Other workers too" is what a claim about the task needs, and is often several times as wide as
    "these workers, other tasks". Classes have Krippendorff's alpha, Fleiss' kappa, Gwet's AC1 and
    AC2 and others; numbers have intraclass correlations; spans, boxes, texts, sets and masks have
    mean scores of pairs.

    -o FILE has the columns coefficient, value, low and high (these workers), low_workers and
    high_workers (other workers too), n_tasks, n_workers and n_pairs. --json also has tables of
    classes, of --pairs and of the differences between the groups of --compare.
    """
    from wisecrowd.cli.run import agreement as run

    run.agreement(context, files, asked)
