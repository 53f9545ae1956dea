"""``wisecrowd agreement``: how far workers agree."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from wisecrowd.cli.options.agreement import AgreementOptions
from wisecrowd.cli.run.inputs import describe_run, read_labels
from wisecrowd.cli.run.outputs import (
    check_outputs,
    give_json,
    print_text,
    rows_of,
    split_output,
    write_result,
)
from wisecrowd.cli.run.progress import working
from wisecrowd.cli.terminal import Notes, text_table
from wisecrowd.core.attributes import with_worker_attributes
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.io.tables import read_frame
from wisecrowd.storage.atomic import together
from wisecrowd.truth import agreement as measure_agreement

if TYPE_CHECKING:
    from wisecrowd.core.part import Table
    from wisecrowd.truth import Agreement

BELOW = 1  # the exit code of --floor
MOST_ROWS = 40  # rows of a table that a terminal shows


def agreement(context: typer.Context, files: list[str], asked: AgreementOptions) -> None:
    """Run ``wisecrowd agreement``."""
    if asked.floor is not None:
        check_number("--floor", asked.floor, -1.0, 1.0)
    reading = asked.reading
    if asked.compare is not None and reading.kinds is None:
        reading = replace(reading, kinds="all")
    places = split_output(asked.output, asked.as_json)
    sources = [*files, *filter(None, [asked.worker_attributes])]
    check_outputs(
        [places[0]], [*sources, *reading.key_files], others=filter(None, [places[1]]),
        overwrite=asked.overwrite,
    )  # fmt: skip
    with Notes(asked.quiet) as notes:
        data: Any = read_labels(files, reading, notes)
        if asked.worker_attributes is not None:
            data = with_worker_attributes(data, read_frame(asked.worker_attributes))
        with working("measuring agreement", notes):
            found = measure_agreement(
                data, level=asked.level, pairs=asked.pairs, compare=asked.compare
            )
        for note in found.notes:
            notes(note)
        manifest = describe_run(
            context, sources, method="agreement",
            parameters={"level": asked.level, "compare": asked.compare},
        )  # fmt: skip
        table, document = places
        with together():
            if table is not None:
                write_result(found.coefficients, table, manifest, notes)
                if not asked.as_json and (asked.pairs or asked.compare):
                    notes("the file has the coefficients; --json has the other tables")
            if asked.as_json:
                give_json(lambda: agreement_document(found, notes), document, manifest, notes)
        if table is None and not asked.as_json:
            print_text(agreement_text(found))
        below = asked.floor is not None and _below(found, asked.floor, notes)
    if below:
        raise typer.Exit(BELOW)


def _below(found: Agreement, floor: float, notes: Notes) -> bool:
    """Return whether the first coefficient may be lower, and note it."""
    name = str(found.coefficients["coefficient"].tolist()[0])
    first = found[name]
    low = first.low_workers if first.low_workers == first.low_workers else first.low
    if low >= floor:
        return False
    notes(f"{name} may be as low as {low:.3f}, which is below {floor:g}")
    return True


def agreement_document(found: Agreement, notes: Notes) -> dict[str, Any]:
    """Return the tables as plain data."""
    return {name: rows_of(one) for name, one in found.tables().items()} | {"notes": notes.said}


def agreement_text(found: Agreement) -> str:
    """Return the tables as text."""
    columns = found.coefficients
    counts = [int(columns[name][0]) for name in ("n_tasks", "n_workers", "n_pairs")]
    parts = [
        f"{counts[0]:,} tasks with two labels or more, {counts[1]:,} workers, {counts[2]:,} pairs "
        "of labels",
        _interval_table(columns, ["group"] if "group" in columns else [], found.level),
    ]
    if found.differences:
        header = ["first", "second"]
        parts.append(_interval_table(found.differences, header, found.level, "difference in"))
    if found.classes:
        parts.append(_interval_table(found.classes, ["class"], found.level))
    if found.pairs and len(found.pairs["first"]):
        parts.append(_pairs_text(found.pairs))
    return "\n\n".join(parts) + "\n"


def _interval_table(
    table: Table, names: list[str], level: float, heading: str = "coefficient"
) -> str:
    """Return a table of coefficients, the interval for other workers first."""
    header = [*names, heading, "value", "other workers too", "these workers"]
    rows: list[list[object]] = []
    n_rows = len(table["value"])
    for n in range(min(n_rows, MOST_ROWS)):
        value, *ends = (float(table[name][n]) for name in ENDS)
        rows.append([
            *(str(table[name][n : n + 1].tolist()[0]) for name in names),
            str(table["coefficient"][n]), value if value == value else "undefined",
            _interval(*ends[2:]), _interval(*ends[:2]),
        ])  # fmt: skip
    header[-2:] = [f"{header[-2]} ({level:.0%})", f"{header[-1]} ({level:.0%})"]
    more = n_rows - len(rows)
    return text_table(header, rows) + (f"\nand {more} more rows; --json has all" if more else "")


ENDS = ("value", "low", "high", "low_workers", "high_workers")


def _interval(low: float, high: float) -> str:
    return "" if low != low else f"{low:.3f} to {high:.3f}"


def _pairs_text(pairs: Table) -> str:
    """Return the pairs of workers with the most common tasks."""
    order = (-pairs["n_tasks"]).argsort(kind="stable")[:MOST_ROWS].tolist()
    names = [name for name in pairs if name not in ("low", "high")]
    rows = [[*(pairs[name][n : n + 1].tolist()[0] for name in names)] for n in order]
    shown = [[str(row[0]), str(row[1]), *row[2:]] for row in rows]
    more = len(pairs["first"]) - len(order)
    text = text_table([name.replace("_", " ") for name in names], shown)
    return text + (f"\nand {more} more pairs; --json has all" if more else "")
