"""``wisecrowd convert``: any readable table of annotations to the plain one."""

from __future__ import annotations

from typing import Annotated

import typer

from wisecrowd.cli import options
from wisecrowd.cli.options import Reading


def convert(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="IN", help="Annotations; - is standard input.")],
    target: Annotated[
        str, typer.Argument(metavar="OUT", help="A csv, tsv, jsonl or parquet file; - is stdout.")
    ],
    task: options.TaskColumn = None,
    worker: options.WorkerColumn = None,
    label: options.LabelColumn = None,
    timestamp: options.TimestampColumn = None,
    weight: options.WeightColumn = None,
    format: options.Format = "auto",
    encoding: options.Encoding = "utf-8",
    classes: options.Classes = None,
    abstain: options.Abstain = None,
    duplicates: options.Duplicates = "keep",
    quiet: options.Quiet = False,
) -> None:
    """Write annotations as one plain table.

    Columns: task, worker, label and what else is known. Rows are sorted by task and worker; by
    default none is dropped.
    """
    from wisecrowd.cli.inputs import read_labels, source_files
    from wisecrowd.cli.outputs import check_outputs, write_result
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.storage.manifest import Manifest

    reading = Reading(
        task=task, worker=worker, label=label, timestamp=timestamp, weight=weight, format=format,
        encoding=encoding, classes=classes, abstain=abstain, duplicates=duplicates,
    )  # fmt: skip
    check_outputs([target], [source])
    with Notes(quiet) as notes:
        labels = read_labels([source], reading, notes)
        manifest = Manifest.describe(
            inputs=source_files([source]), command=["wisecrowd", *context.obj]
        )
        write_result(labels.to_dict(), target, manifest, notes)
