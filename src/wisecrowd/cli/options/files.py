"""Commands about files of annotations: ``inspect``, ``convert`` and ``pack``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from wisecrowd.cli.options import shared
from wisecrowd.cli.options.group import command, option
from wisecrowd.cli.options.reading import Reading, SourceOptions


@dataclass(frozen=True, kw_only=True)
class InspectOptions:
    """The options of ``wisecrowd inspect``."""

    source: SourceOptions
    type: shared.Type = None
    scale: shared.Scale = None
    as_json: shared.PrintJson = False


@command
def inspect(files: shared.Files, asked: InspectOptions) -> None:
    """Describe a file: format, columns, questions, counts, and rows left out, with reasons."""
    from wisecrowd.cli.run import files as run

    run.inspect(files, asked)


# All rows: by default nothing is dropped or questioned.
KEEP_ALL = Reading(duplicates="keep", kinds="all")

Source = Annotated[str, typer.Argument(metavar="IN", help="Annotations; - is standard input.")]

Target = Annotated[
    str, typer.Argument(metavar="OUT", help="Output: csv, tsv, jsonl or parquet; - is stdout.")
]


@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """The options of ``wisecrowd convert``."""

    reading: Reading = KEEP_ALL
    gold_to: Annotated[
        str | None, option("--gold-to FILE", "Output file for the gold of an export: task, label.")
    ] = None
    raw_csv: shared.RawCsv = False
    overwrite: shared.Overwrite = False
    quiet: shared.Quiet = False


@command
def convert(context: typer.Context, source: Source, target: Target, asked: ConvertOptions) -> None:
    """Convert annotations or a platform's export to one plain table.

    The columns are task, worker, label and any others in the data; instead of label, numbers have
    value, pairs left, right and outcome, and spans start, end, label and text. Rows are sorted by
    task and worker. By default only rows that an export marks as skipped or rejected are dropped.
    """
    from wisecrowd.cli.run import files as run

    run.convert(context, source, target, asked)


@dataclass(frozen=True, kw_only=True)
class PackingOptions:
    """The options of ``wisecrowd pack``."""

    output: Annotated[str, option("-o --output FOLDER", "The pack to write.")]
    shards: Annotated[
        str,
        option(
            "--shards N",
            "Number of shards, a power of two (default: auto, one for 2^24 rows, at least 16)",
        ),
    ] = "auto"
    patterns: Annotated[
        str,
        option(
            "--patterns auto|always|never",
            "Whether tasks with the same labels share one row; auto looks at a sample.",
        ),
    ] = "auto"
    verify: Annotated[bool, option("--verify", "Compare the digests of all files at the end.")] = (
        False
    )
    max_refused: Annotated[
        int,
        option(
            "--max-refused N",
            "Leave out up to N rows that cannot be read (default: 0, the first one stops).",
            min=0,
        ),
    ] = 0
    gold: shared.Gold = None
    gold_columns: shared.GoldColumns = None
    reading: Reading
    quiet: shared.Quiet = False


@command
def pack(files: shared.Files, asked: PackingOptions) -> None:
    """Write annotations as a pack: a folder of shards that is read one shard at a time.

    Packs hold classes, numbers (--type numbers) and pairs (--type pairs). Memory does not grow with
    the number of labels. Every command that reads labels reads a pack; aggregate --engine files and
    --engine pool need no more memory than a shard. An interrupted run continues when the same
    command is given again.
    """
    from wisecrowd.cli.run import files as run

    run.pack(files, asked)
