"""Coordinates of charts; the templates turn them into SVG, with escaping on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from wisecrowd.reporting.text import shorten

WIDTH, HEIGHT = 640.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 14.0, 12.0, 44.0


class Tick(NamedTuple):
    """A mark on an axis: position and text."""

    at: float
    text: str


class Point(NamedTuple):
    """A dot, with its tooltip and the CSS class of its colour."""

    x: float
    y: float
    text: str
    kind: str = ""


class Bar(NamedTuple):
    """A rectangle with a caption."""

    x: float
    y: float
    width: float
    height: float
    text: str
    kind: str = ""


class Line(NamedTuple):
    """A path in SVG syntax."""

    path: str
    kind: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart, ready for the template; ``says`` is the text for screen readers."""

    says: str
    x_label: str = ""
    y_label: str = ""
    width: float = WIDTH
    height: float = HEIGHT
    x_ticks: Sequence[Tick] = ()
    y_ticks: Sequence[Tick] = ()
    lines: Sequence[Line] = ()
    bars: Sequence[Bar] = ()
    points: Sequence[Point] = ()
    frame: tuple[float, float, float, float] = field(
        default=(LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM)
    )


class Scale:
    """Linear or logarithmic mapping of values to positions.

    Examples
    --------
    >>> Scale(0, 10, 100, 200)(5)
    150.0
    >>> Scale(1, 100, 0, 10, log=True)(10)
    5.0
    """

    def __init__(
        self, low: float, high: float, start: float, end: float, *, log: bool = False
    ) -> None:
        self._log = log
        self._low, self._high = self._as(low), self._as(high)
        if self._high <= self._low:
            self._high = self._low + 1.0
        self._start, self._end = start, end

    def _as(self, value: float) -> float:
        return float(np.log10(max(value, 1e-12))) if self._log else float(value)

    def __call__(self, value: float) -> float:
        """Return the position of a value, to a tenth of a pixel."""
        share = (self._as(value) - self._low) / (self._high - self._low)
        return round(self._start + share * (self._end - self._start), 1)


def isolated(name: str) -> str:
    """Return the start of a name between characters that isolate its writing direction.

    A tooltip is plain text, in which no element can do this.
    """
    return f"\u2068{shorten(name, 40)}\u2069"


def path_of(points: Sequence[tuple[float, float]]) -> str:
    """Return a path through points.

    Examples
    --------
    >>> path_of([(0, 1), (2, 3)])
    'M0 1L2 3'
    """
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points) if len(points) else ""


def _share_axis(low: float, high: float) -> tuple[Scale, list[Tick]]:
    """Return a vertical scale of shares that starts at a multiple of 0.1, and its ticks."""
    bottom = max(0.0, np.floor(low * 10 - 1e-9) / 10)
    top = min(1.0, np.ceil(high * 10 + 1e-9) / 10)
    if top - bottom < 0.2 - 1e-9:
        bottom = max(0.0, top - 0.2)
    scale = Scale(bottom, top, HEIGHT - BOTTOM, TOP)
    step = 0.1 if top - bottom <= 0.6 else 0.2
    values = np.arange(round(bottom / step), round(top / step) + 1) * step
    inside = [v for v in values.tolist() if bottom - 1e-9 <= v <= top + 1e-9]
    return scale, [Tick(scale(v), f"{100 * v:.0f} %") for v in inside]


def _powers(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10 … within a range, or only powers of ten if there are many."""
    steps = (1, 2, 5) if high / max(low, 1) < 200 else (1,)
    found = [s * 10.0**p for p in range(-1, 9) for s in steps]
    return [value for value in found if low <= value <= high]


def quality_against_volume(rows: Sequence[dict[str, Any]]) -> Chart | None:
    """Return a chart of workers as dots, with their intervals as bars."""
    known = [row for row in rows if row["accuracy"] is not None and row["n_labels"] > 0]
    if not known:
        return None
    volume = [row["n_labels"] for row in known]
    ends = (LEFT + 12, WIDTH - RIGHT - 12)
    x = Scale(min(volume), max(volume), *ends, log=True)
    low = min(row["low"] if row["low"] is not None else row["accuracy"] for row in known)
    y, y_ticks = _share_axis(low, 1.0)
    intervals = "".join(
        path_of([(x(r["n_labels"]), y(r["low"])), (x(r["n_labels"]), y(r["high"]))])
        for r in known
        if r["low"] is not None
    )
    points = [
        Point(
            x(row["n_labels"]),
            y(row["accuracy"]),
            f"{isolated(row['worker'])}: {100 * row['accuracy']:.0f} %, {row['n_labels']} labels",
            "bad" if row["flags"] else "",
        )
        for row in known
    ]
    ticks = _powers(min(volume), max(volume)) or [float(min(volume))]
    return Chart(
        f"{len(known)} workers: estimated accuracy against number of labels; the table below has "
        "the same numbers.",
        "labels (logarithmic)", "estimated accuracy",
        x_ticks=[Tick(x(v), f"{v:g}") for v in ticks],
        y_ticks=y_ticks,
        lines=[Line(intervals, "interval")],
        points=points,
    )  # fmt: skip


def columns(
    rows: Sequence[tuple[str, float]], says: str, x_label: str, y_label: str
) -> Chart | None:
    """Return a chart of counts as vertical bars."""
    if not rows:
        return None
    most = max(value for _, value in rows) or 1
    y = Scale(0, most, HEIGHT - BOTTOM, TOP + 14)
    step = (WIDTH - LEFT - RIGHT) / len(rows)
    bars, ticks = [], []
    for n, (name, value) in enumerate(rows):
        left = LEFT + n * step
        bars.append(
            Bar(
                round(left + 0.12 * step, 1), y(value), round(0.76 * step, 1),
                round(HEIGHT - BOTTOM - y(value), 1), f"{value:,.0f}".replace(",", "\u202f"),
            )
        )  # fmt: skip
        ticks.append(Tick(round(left + step / 2, 1), name))
    return Chart(says, x_label, y_label, x_ticks=ticks, bars=bars)


def reliability(rows: Sequence[dict[str, Any]]) -> Chart:
    """Return a chart of accuracy against stated confidence, with the line where both are equal."""
    low = min(min(row["low"], row["confidence"]) for row in rows)
    y, y_ticks = _share_axis(low, 1.0)
    start = min(row["confidence"] for row in rows)
    x = Scale(start, 1.0, LEFT + 12, WIDTH - RIGHT - 12)
    spread = "".join(
        path_of([(x(r["confidence"]), y(r["low"])), (x(r["confidence"]), y(r["high"]))])
        for r in rows
    )
    points = [
        Point(
            x(r["confidence"]), y(r["accuracy"]),
            f"confidence {100 * r['confidence']:.0f} %, accuracy {100 * r['accuracy']:.0f} %, "
            f"{r['count']} tasks",
        )
        for r in rows
    ]  # fmt: skip
    ticks = sorted({start, *(v for v in np.arange(0, 1.01, 0.1).tolist() if v > start + 0.03)})
    return Chart(
        "Accuracy against confidence; on the dashed line both are equal.",
        "confidence", "accuracy",
        x_ticks=[Tick(x(v), f"{100 * v:.0f} %") for v in ticks],
        y_ticks=y_ticks,
        lines=[
            Line(path_of([(x(start), y(start)), (x(1.0), y(1.0))]), "ideal"),
            Line(spread, "interval"),
            Line(path_of([(p.x, p.y) for p in points])),
        ],
        points=points,
    )  # fmt: skip


def budget_curve(points: Sequence[dict[str, Any]], now: float) -> Chart:
    """Return a chart of expected accuracy against labels per task; the simulated part is dashed."""
    measured = [p for p in points if p["measured"] is not None]
    values = [p["accuracy"] for p in points] + [p["measured"] for p in measured]
    y, y_ticks = _share_axis(min(values), max(values))
    last = max(p["labels"] for p in points)
    x = Scale(0, last, LEFT, WIDTH - RIGHT - 12)
    past = [(x(p["labels"]), y(p["accuracy"])) for p in points if p["labels"] <= now + 1e-9]
    future = [(x(p["labels"]), y(p["accuracy"])) for p in points if p["labels"] >= now - 1e-9]
    step = max(1, int(np.ceil(last / 10)))
    return Chart(
        "Expected accuracy against labels per task; the vertical line is the current number.",
        "labels per task", "accuracy",
        x_ticks=[Tick(x(v), str(v)) for v in range(0, int(last) + 1, step)],
        y_ticks=y_ticks,
        lines=[
            Line(path_of([(x(now), TOP), (x(now), HEIGHT - BOTTOM)]), "now"),
            Line(path_of(past)),
            Line(path_of(future), "simulated"),
        ],
        points=[
            Point(x(p["labels"]), y(p["accuracy"]), f"{p['labels']:.1f} labels per task")
            for p in points
        ]
        + [
            Point(x(p["labels"]), y(p["measured"]), "measured by known classes", "bad")
            for p in measured
        ],
    )  # fmt: skip


def network_drawing(graph: dict[str, Any]) -> Chart | None:
    """Return a chart of linked workers on a circle, with members of a group side by side."""
    nodes, size = graph["nodes"], 340.0
    if not nodes:
        return None
    angle = 2 * np.pi * np.arange(len(nodes)) / len(nodes) - np.pi / 2
    x = (size / 2 + (size / 2 - 24) * np.cos(angle)).round(1).tolist()
    y = (size / 2 + (size / 2 - 24) * np.sin(angle)).round(1).tolist()
    links = "".join(path_of([(x[a], y[a]), (x[b], y[b])]) for a, b in graph["edges"])
    return Chart(
        f"{len(nodes)} workers and {len(graph['edges'])} links between pairs who agree more than "
        "their skill explains; the table has the pairs.",
        width=size, height=size,
        lines=[Line(links, "link")],
        points=[
            Point(x[n], y[n], isolated(node["worker"]), f"g{node['group'] % 6}"
                  if node["group"] >= 0 else "")
            for n, node in enumerate(nodes)
        ],
        frame=(0, 0, 0, 0),
    )  # fmt: skip


def sparkline(values: Sequence[float]) -> str:
    """Return the path of a sparkline of 120 × 30 pixels, whose height is the range from 0 to 1."""
    step = 120 / max(len(values) - 1, 1)
    return path_of([(round(n * step, 1), round(29 - 28 * v, 1)) for n, v in enumerate(values)])
