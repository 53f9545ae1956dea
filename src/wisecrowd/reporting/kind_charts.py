"""Charts of other kinds than classes: estimates with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wisecrowd.reporting.charts import (
    HEIGHT,
    INSET,
    TOP,
    WIDTH,
    Chart,
    Line,
    Point,
    Scale,
    Tick,
    found_of,
    isolated,
    names_beside,
    path_of,
    ticks,
    tone_of,
)
from wisecrowd.reporting.display import number

ROW = 22.0  # height of an item
MOST_ROWS = 24

Row = dict[str, Any]


def bias_and_noise(rows: Sequence[Row]) -> Chart | None:
    """Return a chart of workers as dots, bias against noise, with both intervals as bars."""
    known = [n for n, r in enumerate(rows) if r["bias"] is not None and r["noise"] is not None]
    if not known:
        return None
    part = [rows[n] for n in known]
    bias = [row["bias"] for row in part]
    ends = [end for row in part for end in (row["bias_low"], row["bias_high"]) if end is not None]
    noise = [row["noise"] for row in part]
    # An interval from two or three labels would hide all others.
    reach = 1.5 * (max(map(abs, bias)) or 1.0)
    low, high = max(min([*ends, 0.0]), -reach), min(max([*ends, 0.0]), reach)
    top = min(max(row["noise_high"] or row["noise"] for row in part), 1.5 * max(noise)) or 1.0
    x, y = Scale(low, high, INSET, WIDTH - INSET), Scale(0.0, top, HEIGHT, TOP)
    lines = "".join(_cross(row, x, y, (low, high), top) for row in part)
    points = [
        Point(
            x(row["bias"]), y(row["noise"]),
            f"{isolated(row['worker'])}: bias {number(row['bias'])}, noise "
            f"{number(row['noise'])}, {row['n_labels']} labels{found_of(row)}",
            tone_of(row), n,
        )
        for n, row in zip(known, part, strict=True)
    ]  # fmt: skip
    zero = path_of([(x(0.0), TOP), (x(0.0), HEIGHT)])
    return Chart(
        f"{len(known)} workers: bias against noise, with 95 % intervals; the table has the same "
        "numbers.",
        "bias: mean difference from the others", "noise",
        x_ticks=[Tick(x(v), f"{v:g}") for v in ticks(low, high)],
        y_ticks=[Tick(y(v), f"{v:g}") for v in ticks(0.0, top)],
        lines=[Line(zero, "now"), Line(lines, "interval")], points=points,
        names=names_beside(points, [row["worker"] for row in part]),
    )  # fmt: skip


def _cross(row: Row, x: Scale, y: Scale, ends: tuple[float, float], top: float) -> str:
    """Return the path of both intervals of a worker, cut at the ends of the chart."""
    found = ""
    if row["bias_low"] is not None and row["bias_high"] is not None:
        low, high = max(row["bias_low"], ends[0]), min(row["bias_high"], ends[1])
        found += path_of([(x(low), y(row["noise"])), (x(high), y(row["noise"]))])
    if row["noise_low"] is not None and row["noise_high"] is not None:
        across, high = x(row["bias"]), min(row["noise_high"], top)
        found += path_of([(across, y(row["noise_low"])), (across, y(high))])
    return found


def rates_of_workers(rows: Sequence[Row]) -> Chart | None:
    """Return a chart of workers as dots: false alarms against sensitivity."""
    if not rows:
        return None
    most = min(1.0, 1.1 * max(0.1, *(row["false_alarms"] for row in rows)))
    x, y = Scale(0.0, most, INSET, WIDTH - INSET), Scale(0.0, 1.0, HEIGHT, TOP)
    points = [
        Point(
            x(row["false_alarms"]), y(row["sensitivity"]),
            f"{isolated(row['worker'])}: sensitivity {number(row['sensitivity'])}, false alarms "
            f"{number(row['false_alarms'])}, {row['n_labels']} labels{found_of(row)}",
            tone_of(row), n,
        )
        for n, row in enumerate(rows)
    ]  # fmt: skip
    return Chart(
        f"{len(rows)} workers: sensitivity against false alarms; the table has the same numbers.",
        "false alarms: share of the classes that are not there", "sensitivity",
        x_ticks=[Tick(x(v), f"{v:g}") for v in ticks(0.0, most)],
        y_ticks=[Tick(y(v), f"{v:g}") for v in ticks(0.0, 1.0)],
        points=points, names=names_beside(points, [row["worker"] for row in rows]),
    )  # fmt: skip


def scores_by_rank(rows: Sequence[Row]) -> Chart | None:
    """Return a chart of the best items: score, 95% interval, and the range of ranks as text."""
    marks = [
        Mark(
            row["item"], row["score"], row["low"], row["high"],
            f"score {number(row['score'])}, rank {row['rank']} "
            f"({row['rank_low']} to {row['rank_high']})",
            "bad" if row["component"] > 0 else "accent",
        )
        for row in rows
    ]  # fmt: skip
    return interval_rows(marks, "items with their scores, best first", "score (logits)")


def bias_by_worker(rows: Sequence[Row]) -> Chart | None:
    """Return a chart of the biases of workers with 95% intervals, largest first."""
    return _of_workers(rows, "bias", "bias", "labels", "bias (classes)", keyed=False)


def reliability_of_voters(rows: Sequence[Row]) -> Chart | None:
    """Return a chart of the reliability of workers with 95% intervals."""
    label = "reliability (1: as the others, 0: random)"
    return _of_workers(rows, "reliability", "reliability", "votes", label)


def agreement_on_spans(rows: Sequence[Row]) -> Chart | None:
    """Return a chart of the agreement of workers with the others, with intervals."""
    label = "agreement beyond chance (1: perfect, 0: chance)"
    return _of_workers(rows, "agreement", "agreement", "texts", label)


def detection_of_workers(rows: Sequence[Row]) -> Chart | None:
    """Return a chart of workers' detection rates of boxes with 95% intervals."""
    label = "share of the others' objects found"
    return _of_workers(rows, "detection", "detection", "images", label)


def error_rates(rows: Sequence[Row]) -> Chart | None:
    """Return a chart of the error rates of workers with 95% intervals."""
    label = "share of words that differ from others"
    return _of_workers(rows, "error_rate", "error rate", "texts", label)


def shares_of_right_votes(rows: Sequence[Row]) -> Chart | None:
    """Return a chart of the shares of workers' votes that agree with the clusters."""
    label = "share of votes that agree with the clusters"
    return _of_workers(rows, "agreement_with_result", "agreement", "votes", label)


def extent_of_workers(rows: Sequence[Row]) -> Chart | None:
    """Return a chart of the relative areas of workers' masks, with 95% intervals."""
    names = ("ratio", "low", "high")
    doublings = [
        row if row["ratio"] is None else
        {**row, **{name: float(np.log2(max(row[name], 1e-9))) for name in names}}
        for row in rows
    ]  # fmt: skip
    label = "area relative to the others, in doublings"
    return _of_workers(doublings, "ratio", "doublings", "masks", label)


def _of_workers(
    rows: Sequence[Row], value: str, named: str, units: str, label: str, *, keyed: bool = True
) -> Chart | None:
    """Return a chart of an estimate for each worker, in the order of the table."""
    marks = [
        Mark(
            row["worker"], row[value], row.get("low"), row.get("high"),
            f"{named} {number(row[value])}, {row['n_labels']} {units}{found_of(row)}",
            tone_of(row), n if keyed else None,
        )
        for n, row in enumerate(rows)
        if row.get(value) is not None
    ]  # fmt: skip
    return interval_rows(marks, f"workers with their {named}, in the order of the table", label)


class Mark(NamedTuple):
    """A row of a chart: its name, estimate, interval, sentence, colour, and row of the table."""

    name: str
    value: float
    low: float | None
    high: float | None
    text: str
    kind: str = ""
    row: int | None = None


def interval_rows(marks: Sequence[Mark], says: str, label: str) -> Chart | None:
    """Return a chart with one row per name: a dot and its interval from left to right."""
    part = marks[:MOST_ROWS]
    if not part:
        return None
    height = ROW * len(part)
    middle = [mark.value for mark in part]
    span = 3 * (max(map(abs, middle)) or 1.0)
    known = [(m.low, m.high) for m in part if m.low is not None and m.high is not None]
    low = min(max(min([a for a, _ in known] + middle), -span), 0.0)
    high = max(min(max([b for _, b in known] + middle), span), 0.0)
    x = Scale(low, high, INSET, WIDTH - INSET)
    at = [round(ROW * (n + 0.5), 1) for n in range(len(part))]
    lines = [Line(path_of([(x(0.0), 0), (x(0.0), height)]), "now")]
    for kind in dict.fromkeys(mark.kind for mark in part):
        bars = "".join(
            path_of([(x(max(m.low, low)), at[n]), (x(min(m.high, high)), at[n])])
            for n, m in enumerate(part)
            if m.kind == kind and m.low is not None and m.high is not None
        )
        lines.append(Line(bars, f"interval {kind}"))
    return Chart(
        f"{len(part)} {says}, with 95 % intervals; the table has the same numbers.", label,
        height=height,
        x_ticks=[Tick(x(v), f"{v:g}") for v in ticks(low, high, 5)],
        y_ticks=[Tick(at[n], isolated(mark.name, 14)) for n, mark in enumerate(part)],
        lines=lines,
        points=[
            Point(x(mark.value), at[n], f"{isolated(mark.name)}: {mark.text}", mark.kind, mark.row)
            for n, mark in enumerate(part)
        ],
        shape="rows",
    )  # fmt: skip
