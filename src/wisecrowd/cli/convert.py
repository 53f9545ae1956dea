"""``wisecrowd convert``: any readable table or export of annotations to the plain table."""

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
    no_header: options.NoHeader = False,
    columns: options.Columns = None,
    wide: options.Wide = False,
    worker_columns: options.WorkerColumns = None,
    format: options.Format = "auto",
    encoding: options.Encoding = "utf-8",
    classes: options.Classes = None,
    abstain: options.Abstain = None,
    duplicates: options.Duplicates = "keep",
    type: options.Type = "labels",
    kinds: options.Kinds = "all",
    exclude_workers: options.ExcludeWorkers = None,
    pseudonymize: options.Pseudonymize = None,
    gold: Annotated[
        str | None,
        typer.Option(
            "--gold", metavar="FILE", help="Write here what an export marks as gold: task, label."
        ),
    ] = None,
    raw_csv: options.RawCsv = False,
    quiet: options.Quiet = False,
) -> None:
    """Write annotations, also the export of a platform, as one plain table.

    Columns: task, worker, label and what else is known. Rows are sorted by task and worker; by
    default none is dropped, but for what an export itself marks as skipped or rejected.
    """
    from wisecrowd.cli.inputs import read_labels, source_files
    from wisecrowd.cli.outputs import check_outputs, write_result
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.io.tables import read_gold
    from wisecrowd.storage.atomic import together
    from wisecrowd.storage.manifest import Manifest

    reading = Reading(
        no_header=no_header, columns=columns, wide=wide, worker_columns=worker_columns,
        task=task, worker=worker, label=label, timestamp=timestamp, weight=weight, format=format,
        encoding=encoding, classes=classes, abstain=abstain, duplicates=duplicates, type=type,
        pseudonymize=pseudonymize, kinds=kinds, exclude_workers=exclude_workers,
    )  # fmt: skip
    check_outputs([target, *([gold] if gold else [])], [source, *reading.key_files])
    with Notes(quiet) as notes:
        labels = read_labels([source], reading, notes)
        manifest = Manifest.describe(
            inputs=source_files([source]), command=["wisecrowd", *context.obj]
        )
        known = None
        if gold is not None:
            known = read_gold(source, format, task=task, label=label, encoding=encoding)
        with together():
            write_result(labels.to_dict(), target, manifest, notes, raw=raw_csv, estimates=False)
            if known is not None:
                table = {name: known[name].to_numpy() for name in known.column_names}
                write_result(table, gold, manifest, notes, raw=raw_csv, estimates=False)
