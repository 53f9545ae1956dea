"""Page about judges: a card for each, agreement beside that of people, dependence, leniency."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from wisecrowd.core.plain_values import PlainRows, plain
from wisecrowd.reporting.charts import (
    INSET,
    WIDTH,
    Chart,
    Line,
    Point,
    Scale,
    Tick,
    isolated,
    path_of,
    ticks,
)
from wisecrowd.reporting.display import number, percent, shown
from wisecrowd.reporting.document import page_of
from wisecrowd.reporting.kind_charts import ROW, Mark, interval_rows
from wisecrowd.reporting.sections import Section, Summary
from wisecrowd.storage.atomic import atomic_write, together
from wisecrowd.storage.manifest import Manifest, write_manifest
from wisecrowd.truth.judge_results import NO, UNDECIDED, YES, JudgeResults

SCHEMA, VERSION = "wisecrowd-judges", 1
LEAST_SPAN = 0.2  # of the axis of agreement, so that a small difference looks small
MOST_JUDGES = 40  # that the page shows
MOST_IN_MATRIX = 12
TONES = {YES: "", NO: "high", UNDECIDED: "medium"}
Row = dict[str, Any]


def judges_summary(
    found: JudgeResults,
    *,
    title: str | None = None,
    files: Sequence[str] = (),
    manifest: Manifest | None = None,
) -> Summary:
    """Return the content of the page, ready for JSON.

    Parameters
    ----------
    found : JudgeResults
    title : str, optional
    files : sequence of str
        Source files of the labels.
    manifest : Manifest, optional
    """
    made = manifest or Manifest.describe(
        method="judges", parameters={"epsilon": found.epsilon}, seed=0
    )
    facts: Mapping[str, Any] = asdict(made)
    content = {
        "schema": SCHEMA,
        "version": VERSION,
        "title": title or (f"Judges: {', '.join(map(shown, files))}" if files else "Judges"),
        "epsilon": found.epsilon,
        "n_people": found.n_people,
        "distance": found.distance,
        "against_known": found.against_known,
        "clustered": found.clustered,
        "verdicts": [shown(verdict.text) for verdict in found.verdicts],
        "outcomes": [verdict.outcome for verdict in found.verdicts],
        "findings": [finding.to_dict() for finding in found.findings()],
        "remarks": [shown(note) for note in found.notes],
        "tables": {name: rows_of(table) for name, table in found.tables.items()},
        "reproduce": {
            **facts,
            "command": [shown(word) for word in made.command],
            "inputs": {shown(name): digest for name, digest in made.inputs.items()},
            "files": [shown(file) for file in files],
        },
    }
    ready: Summary = plain(content)
    return ready


def rows_of(table: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a table as plain data, with ids as text and None for NaN."""
    ids = {"judge", "person", "first", "second", "class"}
    columns = {
        name: [shown(one) for one in values.tolist()]
        if name in ids and values.dtype == object
        else plain(values)
        for name, values in table.items()
    }
    return list(PlainRows(dict(zip(columns, row, strict=True))
                          for row in zip(*columns.values(), strict=True)))  # fmt: skip


def judges_page(summary: Summary) -> str:
    """Return the page, one HTML file that needs no network."""
    tables, rows = summary["tables"], summary["tables"]["judges"]
    sections = [
        Section("judge_cards", "May they replace a person?",
                {"d": summary, "cards": _cards(summary)}),
        Section("judge_agreement", "Agreement with people",
                {"d": summary, "rows": tables["judge_people"], "chart": _agreement(summary)}),
        Section("judge_dependence", "Errors that judges share",
                {"d": summary, "matrix": _matrix(summary), "rows": tables["judge_pairs"],
                 "effective": (tables["judge_effective"] or [None])[0]}),
    ]  # fmt: skip
    if any(row["leniency"] is not None for row in rows):
        data = {"d": summary, "rows": rows, "chart": _leniency(rows)}
        sections.append(Section("judge_leniency", "Leniency", data))
    if tables["judge_classes"]:
        data = {"d": summary, "rows": tables["judge_classes"]}
        sections.append(Section("judge_classes", "Classes that judges favour", data))
    if tables["judge_sides"]:
        data = {"d": summary, "rows": tables["judge_sides"]}
        sections.append(Section("judge_sides", "Exchanged sides", data))
    data = {"d": summary["reproduce"]}
    sections.append(Section("reproduce", "How to reproduce this page", data))
    names = ("schema", "version", "title", "epsilon", "verdicts", "reproduce")
    return page_of(summary, sections, {name: summary[name] for name in names})


def save_judges_page(summary: Summary, path: str | os.PathLike[str], manifest: Manifest) -> None:
    """Write the page atomically, with its manifest."""
    page = judges_page(summary)
    with together():
        with atomic_write(path) as stream:
            stream.write(page)
        write_manifest(path, manifest)


# ------------------------------------------------------------------------------------------- cards


def _cards(summary: Summary) -> list[Row]:
    """Return one card for each judge: verdict, and what is said beside it."""
    tables, found = summary["tables"], []
    for n, row in enumerate(tables["judges"][:MOST_JUDGES]):
        people = [one for one in tables["judge_people"] if one["judge"] == row["judge"]]
        outcome = summary["outcomes"][n]
        found.append({
            "judge": row["judge"],
            "tone": TONES.get(outcome, ""),
            "outcome": outcome,
            "text": summary["verdicts"][n],
            "facts": list(_facts(summary, row, people)),
        })  # fmt: skip
    return found


def _facts(summary: Summary, row: Row, people: list[Row]) -> list[tuple[str, str]]:
    """Return names and values that stand beside a verdict."""
    distance, facts = summary["distance"], []
    if people:
        beaten = sum(1 for one in people if one["beaten"])
        facts.append(("People beaten", f"{beaten} of {len(people)}"))
        facts.append(("At least as close as a person", percent(row["rho"], 0)))
        score, ceiling = row["score"], row["ceiling"]
        named = "Distance from the others" if distance else "Agreement with the others"
        shown_scores = [number(-x) if distance else percent(x, 0) for x in (score, ceiling)]
        facts.append((named, f"{shown_scores[0]}; people {shown_scores[1]}"))
        if row["power"] is not None:
            facts.append(("A person would pass", percent(row["power"], 0)))
    if row.get("on_known") is not None:
        value, low, high = (row[name] for name in ("on_known", "known_low", "known_high"))
        text = (
            f"{number(value)} ({number(low)} to {number(high)})"
            if distance
            else f"{percent(value, 0)} ({percent(low, 0)} to {percent(high, 0)})"
        )
        named = "Mean error on known answers" if distance else "Right on known answers"
        facts.append((named, f"{text}, {row['n_known']} tasks"))
    if row["leniency"] is not None:
        ends = f"({number(row['low'])} to {number(row['high'])})"
        facts.append(("Above people by", f"{number(row['leniency'])} {ends}"))
    classes = [
        one for one in summary["tables"]["judge_classes"]
        if one["judge"] == row["judge"] and one["p"] is not None and one["p"] < 0.05
    ]  # fmt: skip
    if classes:
        worst = max(classes, key=lambda one: (round(abs(one["difference"]), 9), one["difference"]))
        points = f"{100 * worst['difference']:+.0f} points"
        facts.append(("Favours", f"{worst['class']}: {points}"))
    facts += [
        ("Consistent in both orders", percent(one["consistent"], 0))
        for one in summary["tables"]["judge_sides"]
        if one["judge"] == row["judge"]
    ]
    if row["answered"] is not None and row["answered"] < 1:
        facts.append(("Tasks answered", percent(row["answered"], 0)))
    return facts


# ------------------------------------------------------------------------------------------ charts


def _agreement(summary: Summary) -> Chart | None:
    """Return a chart of the scores of judges, each with that of people as an open end."""
    distance = summary["distance"]
    sign = -1.0 if distance else 1.0
    rows = [
        {**row, "score": sign * row["score"], "ceiling": sign * row["ceiling"], "n": n}
        for n, row in enumerate(summary["tables"]["judges"][:MOST_JUDGES])
        if row["score"] is not None
    ]
    if not rows:
        return None
    values = [row[name] for row in rows for name in ("score", "ceiling")]
    span, least = max(values) - min(values), LEAST_SPAN * (max(values) if distance else 1.0)
    room = max(0.1 * span, (least - span) / 2) or 0.05
    low, high = min(values) - room, max(values) + room
    x, height = Scale(low, high, INSET, WIDTH - INSET), ROW * len(rows)
    at = [round(ROW * (n + 0.5), 1) for n in range(len(rows))]
    tones = {NO: "bad", UNDECIDED: "warn"}
    lines, points = [], []
    for y, row in zip(at, rows, strict=True):
        outcome = summary["outcomes"][row["n"]]
        lines.append(path_of([(x(row["score"]), y), (x(row["ceiling"]), y)]))
        form = number if distance else lambda value: percent(value, 0)
        text = f"{isolated(row['judge'])}: {form(row['score'])}, people {form(row['ceiling'])}"
        points.append(Point(x(row["score"]), y, text, tones.get(outcome, "")))
        points.append(Point(x(row["ceiling"]), y, f"People: {form(row['ceiling'])}", "accent"))
    label = "mean distance from the other people" if distance else "agreement with other people"
    return Chart(
        f"{len(rows)} judges: {label}, beside that of people; the table has the same numbers.",
        label, height=height,
        x_ticks=[Tick(x(v), f"{v:g}") for v in ticks(low, high, 5)],
        y_ticks=[Tick(y, isolated(row["judge"], 14)) for y, row in zip(at, rows, strict=True)],
        lines=[Line("".join(lines), "interval")], points=points, shape="rows",
    )  # fmt: skip


def _leniency(rows: Sequence[Row]) -> Chart | None:
    """Return a chart of judge minus people, with intervals."""
    marks = [
        Mark(
            row["judge"], row["leniency"], row["low"], row["high"],
            f"{number(row['leniency'])} ({number(row['low'])} to {number(row['high'])})",
            "warn" if row["low"] is not None and (row["low"] > 0 or row["high"] < 0) else "",
        )
        for row in rows[:MOST_JUDGES]
        if row["leniency"] is not None
    ]  # fmt: skip
    return interval_rows(marks, "judges with their leniency", "judge minus mean of people")


def _matrix(summary: Summary) -> Row | None:
    """Return the correlations of errors as a square, None if it would be too large."""
    names = [row["judge"] for row in summary["tables"]["judges"]]
    if not 2 <= len(names) <= MOST_IN_MATRIX:
        return None
    place = {name: n for n, name in enumerate(names)}
    cells: list[list[float | None]] = [[None] * len(names) for _ in names]
    for pair in summary["tables"]["judge_pairs"]:
        a, b = place[pair["first"]], place[pair["second"]]
        cells[a][b] = cells[b][a] = pair["phi"]
    heat = [
        [None if value is None else int(np.clip(100 * value, 0, 100)) for value in row]
        for row in cells
    ]
    return {"names": names, "cells": cells, "heat": heat}
