"""``wisecrowd aggregate``: labels and worker quality from raw annotations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from wisecrowd.cli.options import shared
from wisecrowd.cli.options.exports import BoxExport, Exports, PreferenceExport
from wisecrowd.cli.options.features import GraphReading
from wisecrowd.cli.options.group import Group, command, option
from wisecrowd.cli.options.groups import FairOptions
from wisecrowd.cli.options.reading import Reading, Running


@dataclass(frozen=True, kw_only=True)
class PackOptions:
    """Options of fits to packs."""

    panel: ClassVar[str] = "Packs"

    engine: Annotated[
        str,
        option(
            "--engine auto|memory|files|pool|spark",
            "Where a pack is fitted: in memory, one shard at a time, in several processes, or by "
            "Spark; auto: in memory if it fits and -o is not a folder.",
        ),
    ] = "auto"
    processes: Annotated[
        int | None,
        option(
            "--processes N",
            "Processes of --engine pool (default: all cores); does not change results.",
            min=1,
        ),
    ] = None
    scratch: Annotated[
        str | None, option("--scratch FOLDER", "Progress of a fit by shards (default: beside -o).")
    ] = None
    resume: Annotated[bool, option("--resume", "Continue an interrupted fit by shards.")] = False


@dataclass(frozen=True, kw_only=True)
class AggregateOptions:
    """The options of ``wisecrowd aggregate``."""

    output: shared.Output = None
    workers: shared.Workers = None
    method: shared.Method = "auto"
    parameter: shared.Parameters = None
    gold: shared.Gold = None
    soft: shared.Soft = False
    calibrate: Annotated[
        bool,
        option(
            "--calibrate",
            "Calibrate confidences by temperature scaling, without truth; of numbers, the "
            "intervals on --gold, and from 30 known numbers on their level and slope.",
        ),
    ] = False
    exports: Exports
    preference_export: PreferenceExport
    box_export: BoxExport
    graph: GraphReading
    save: Annotated[
        str | None, option("--save FOLDER", "Save the fitted method for wisecrowd.load.")
    ] = None
    gold_columns: shared.GoldColumns = None
    groups: FairOptions
    reading: Reading
    packed: PackOptions
    as_json: shared.Json = False
    raw_csv: shared.RawCsv = False
    overwrite: shared.Overwrite = False
    running: Running

    @property
    def groups_of_options(self) -> tuple[Group, ...]:
        """The groups that have checks, files to read or files to write of their own."""
        return (
            self.groups, self.graph, self.preference_export, self.box_export, self.exports
        )  # fmt: skip


@command
def aggregate(context: typer.Context, files: shared.Files, asked: AggregateOptions) -> None:
    """Estimate the label of every task and the accuracy of every worker.

    The result has one row per task: task, label, confidence, tie, n_labels.

    A pack may be fitted shard by shard (--engine files, pool for several processes, or spark). The
    output is then a folder with one parquet file per shard, or one table if -o has its suffix.
    """
    from wisecrowd.cli.run import aggregate as run

    run.aggregate(context, files, asked)
