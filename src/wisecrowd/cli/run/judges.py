"""``wisecrowd judges``: whether a judge may replace a person."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from wisecrowd.cli.options.judges import JudgeOptions
from wisecrowd.cli.options.reading import Reading
from wisecrowd.cli.run.inputs import KnownFile, column_of_answers, describe_run, read_labels
from wisecrowd.cli.run.outputs import (
    check_outputs,
    give_json,
    note_written,
    print_text,
    rows_of,
    split_output,
)
from wisecrowd.cli.run.progress import working
from wisecrowd.cli.terminal import Notes, harmless, indented, text_table
from wisecrowd.core.columns import find_columns
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.findings import SEVERITIES, check_severity
from wisecrowd.core.kinds import LABELS, kind_of
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.io.joined_columns import with_joined
from wisecrowd.io.read_options import names_of
from wisecrowd.io.tables import read_frame, write_table
from wisecrowd.storage.atomic import atomic_directory, together
from wisecrowd.storage.manifest import is_own_output, write_manifest
from wisecrowd.truth import judges as compare_judges

if TYPE_CHECKING:
    from wisecrowd.core.annotations import Annotations
    from wisecrowd.truth import JudgeResults

FOUND = 1  # the exit code of --fail-on
MOST_ROWS = 40  # rows of a table that a terminal shows
ALL_KINDS = "all"


def judges(context: typer.Context, files: list[str], asked: JudgeOptions) -> None:
    """Run ``wisecrowd judges``."""
    check_number("--epsilon", asked.epsilon, 0.0, 1.0)
    if asked.fail_on is not None:
        check_severity("--fail-on", asked.fail_on)
    swap = _swap(asked.swap)
    reading = with_all_kinds(asked.reading)
    known = KnownFile.given(asked.known, "--known", None, reading)
    sources = [*files, *([known.path] if known else [])]
    _, document = split_output(asked.output, asked.as_json)
    folder = asked.output if document is None else None
    check_outputs(
        [], [*sources, *reading.key_files], folder=folder, others=filter(None, [document]),
        overwrite=asked.overwrite,
    )  # fmt: skip
    with Notes(asked.quiet) as notes:
        data = read_labels(files, reading, notes)
        cluster = None
        if asked.cluster is not None:
            cluster = column_of_answers(files, asked.cluster, data, "--cluster", reading.task)
        answers = None if known is None else weighted_answers(known, data, notes)
        with working("comparing judges with people", notes):
            found = compare_judges(
                data, judges=names_of(asked.judges), known=answers, epsilon=asked.epsilon,
                cluster=cluster, swap=swap,
            )  # fmt: skip
        for note in found.notes:
            notes(note)
        manifest = describe_run(
            context, sources, method="judges",
            parameters={"epsilon": asked.epsilon, "judges": asked.judges},
        )  # fmt: skip
        with together():
            if folder is not None:
                _write(found, folder, asked.raw_csv, manifest, notes)
            if asked.as_json:
                give_json(lambda: _document(found, notes), document, manifest, notes)
        if folder is None and not asked.as_json:
            print_text(judges_text(found))
    exit_if_found(found, asked.fail_on)


def exit_if_found(found: JudgeResults, least: str | None) -> None:
    """Leave with the exit code of findings, if one of them is as severe as --fail-on says."""
    if least is None:
        return
    grave = SEVERITIES[SEVERITIES.index(least) :]
    if any(one.severity in grave for one in found.findings()):
        raise typer.Exit(FOUND)


# ------------------------------------------------------------------------------------------- input


def with_all_kinds(reading: Reading) -> Reading:
    """Return the options of reading, which keep models beside people unless they say otherwise."""
    return replace(reading, kinds=reading.kinds or ALL_KINDS)


def _swap(given: list[str] | None) -> dict[str, str] | None:
    """Return the workers who are a judge with the sides exchanged, by judge."""
    found = {}
    for text in given or []:
        judge, sign, other = text.partition(":")
        if text.count(":") > 1:  # ids such as model:gpt-4o have colons of their own
            parts = text.split(":")
            half = len(parts) // 2
            judge, other = ":".join(parts[:half]), ":".join(parts[half:])
        if not (judge and sign and other):
            raise ParameterError(
                f"--swap is {text!r}; give a judge and the worker who is the judge with the sides "
                "exchanged, such as gpt-4o:gpt-4o-swapped."
            )
        found[judge] = other
    return found or None


def weighted_answers(file: KnownFile, data: Annotations, notes: Notes) -> Any:
    """Return known answers by task, with their weights if the file has some."""
    # Known answers about items are scores, and those about votes are outcomes.
    tasks, answers = file.pairs(notes, LABELS if data.about_items else kind_of(data).name)
    frame = with_joined(read_frame(file.path), file.reading.task)
    if "weight" not in frame.column_names:
        return dict(zip(tasks, answers, strict=True))
    ids = frame[find_columns(list(frame.column_names), {"task": file.reading.task})[0]["task"]]
    weight = dict(zip(map(str, ids.to_pylist()), frame["weight"].to_pylist(), strict=True))
    import pyarrow as pa

    try:
        numbers = [float(weight[str(task)]) for task in tasks]
    except (TypeError, ValueError, KeyError):
        raise DataError(
            f"The column weight of {file.path} has an entry that is not a number; keep the column "
            "as it was."
        ) from None
    return pa.table({"task": tasks, "label": answers, "weight": numbers})


# ------------------------------------------------------------------------------------------ output


def _document(found: JudgeResults, notes: Notes) -> dict[str, Any]:
    """Return all tables as lists of rows."""
    tables: dict[str, Any] = {name: rows_of(table) for name, table in found.tables.items()}
    findings = [one.to_dict() for one in found.findings()]
    return tables | {"findings": findings, "notes": notes.said}


def _write(found: JudgeResults, folder: str, raw: bool, manifest: Any, notes: Notes) -> None:
    """Write the tables that have rows into a folder."""
    tables = {
        name: table for name, table in found.tables.items() if len(next(iter(table.values())))
    }
    own = is_own_output(folder)  # csv files of anybody else must not be lost
    with atomic_directory(folder, is_own_entry=lambda entry: own) as place:
        for name, table in tables.items():
            write_table(str(place / f"{name}.csv"), table, neutralise_formulas=not raw)
    write_manifest(folder, manifest)
    note_written(notes, folder, f"wrote {folder} ({', '.join(f'{name}.csv' for name in tables)})")


def judges_text(found: JudgeResults) -> str:
    """Return the verdicts, the table of judges, and what speaks against them."""
    blocks = ["\n".join(harmless(verdict.text) for verdict in found.verdicts), _judges_table(found)]
    lines = [_power_line(found), _effective_line(found)]
    blocks += ["\n".join(filter(None, lines)), _sides_table(found)]
    lines = []
    for one in found.findings():
        lines.append(f"{one.severity:<6}  {one.id}")
        lines += indented(harmless(str(one)), 8)
    blocks.append("\n".join(lines))
    return "\n\n".join(block.rstrip("\n") for block in blocks if block) + "\n"


def _judges_table(found: JudgeResults) -> str:
    columns = found.columns
    score = "distance" if found.distance else "agreement"
    headings = {
        "omega": "omega", "rho": "rho", "score": score, "ceiling": "of people",
        "leniency": "leniency", "power": "power", "on_known": "on known answers",
        "answered": "answered",
    }  # fmt: skip
    shown = [
        name for name in headings
        if name in columns and np.isfinite(columns[name].astype(np.float64)).any()
    ]  # fmt: skip
    if not (columns["answered"] < 1).any():
        shown = [name for name in shown if name != "answered"]
    if not shown:
        return ""
    rows = []
    for n, judge in enumerate(columns["judge"].tolist()[:MOST_ROWS]):
        row: list[object] = [harmless(str(judge))]
        for name in shown:
            value = float(columns[name][n])
            value = -value if found.distance and name in ("score", "ceiling") else value
            text = "" if np.isnan(value) else f"{value:.3f}"
            if name == "leniency" and not np.isnan(columns["low"][n]):
                text += f" ({columns['low'][n]:.3f} to {columns['high'][n]:.3f})"
            row.append(text)
        rows.append(row)
    return text_table(["judge", *(headings[name] for name in shown)], rows)


def _power_line(found: JudgeResults) -> str:
    table = found.tables["judge_power"]
    parts = [
        f"{int(n)} tasks in {power:.0%}"
        for n, power in zip(table["n_tasks"], table["power"], strict=True)
    ]
    return f"a person as judge would pass with {', '.join(parts)} of the cases" if parts else ""


def _effective_line(found: JudgeResults) -> str:
    table = found.tables["judge_effective"]
    if not len(table["effective"]) or np.isnan(table["effective"][0]):
        return ""
    value, low, high = (float(table[name][0]) for name in ("effective", "low", "high"))
    return (
        f"{int(table['n_judges'][0])} judges are worth {value:.1f} independent ones "
        f"({low:.1f} to {high:.1f})"
    )


def _sides_table(found: JudgeResults) -> str:
    table = found.tables["judge_sides"]
    rows: list[list[object]] = []
    for n, judge in enumerate(table["judge"].tolist()[:MOST_ROWS]):
        ends = f"{table['low'][n]:.2f} to {table['high'][n]:.2f}" if table["flips"][n] else ""
        first = f"{table['first'][n]:.2f}" if table["flips"][n] else ""
        rows.append([
            harmless(str(judge)), int(table["n"][n]), f"{table['consistent'][n]:.2f}",
            int(table["flips"][n]), first, ends,
        ])  # fmt: skip
    header = ["judge", "both orders", "consistent", "flips", "to the first", "95% interval"]
    return text_table(header, rows) if rows else ""
