"""``wisecrowd convert``: conversion of a table or export of annotations to a plain table."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wisecrowd.cli import options
from wisecrowd.cli.option_groups import command
from wisecrowd.cli.options import Reading

# All rows: by default nothing is dropped or questioned.
KEEP_ALL = Reading(duplicates="keep", kinds="all")


@command
def convert(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="IN", help="Annotations; - is standard input.")],
    target: Annotated[
        str, typer.Argument(metavar="OUT", help="Output: csv, tsv, jsonl or parquet; - is stdout.")
    ],
    reading: Reading = KEEP_ALL,
    gold_to: Annotated[
        str | None,
        typer.Option(
            "--gold-to", metavar="FILE", help="Output file for the gold of an export: task, label."
        ),
    ] = None,
    raw_csv: options.RawCsv = False,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
) -> None:
    """Convert annotations or a platform's export to one plain table.

    The columns are task, worker, label and any others in the data; instead of label, numbers have
    value, pairs left, right and outcome, and spans start, end, label and text. Rows are sorted by
    task and worker. By default only rows that an export marks as skipped or rejected are dropped.
    """
    from wisecrowd.cli.inputs import describe_run, read_labels
    from wisecrowd.cli.outputs import check_outputs, write_result
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.sequences import OFFSETS, CrowdSequences
    from wisecrowd.io.span_texts import span_rows
    from wisecrowd.io.tables import read_gold
    from wisecrowd.storage.atomic import together

    check_outputs(
        [target, *([gold_to] if gold_to else [])], [source, *reading.key_files], overwrite=overwrite
    )
    with Notes(quiet) as notes:
        labels = read_labels([source], reading, notes, default_type="labels")
        manifest = describe_run(context, [source])
        known = None
        if gold_to is not None:
            known = read_gold(
                source, reading.format, task=reading.task, label=reading.label,
                encoding=reading.encoding,
            )  # fmt: skip
        data: Any = labels
        spans = isinstance(data, CrowdSequences) and OFFSETS in data.task_columns
        table = span_rows(data) if spans else data.to_dict()
        with together():
            write_result(table, target, manifest, notes, raw=raw_csv, estimates=False)
            if known is not None:
                table = {name: known[name].to_numpy() for name in known.column_names}
                write_result(table, gold_to, manifest, notes, raw=raw_csv, estimates=False)
