"""Coordinates of charts; the templates turn them into SVG, with escaping on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wisecrowd.reporting.display import shorten

# Across, positions are percent of the column, so that a chart fills it and its text keeps its
# size; down, they are pixels.
WIDTH, HEIGHT = 100.0, 300.0
TOP, INSET = 6.0, 3.0
MOST_NAMES = 16  # names written beside their points
COLUMN = 300.0  # pixels of the narrowest column, by which names are kept apart
COLUMNS = 150.0  # height of a chart of counts
LEAST_RATIO = 3  # of the largest to the smallest count, for a logarithmic axis
LETTER, LINE = 6.4, 13.0  # pixels of a letter and of a line


class Tick(NamedTuple):
    """A mark on an axis: position and text."""

    at: float
    text: str


class Point(NamedTuple):
    """A dot, with its sentence, the CSS class of its colour, and the row that it stands for."""

    x: float
    y: float
    text: str
    kind: str = ""
    row: int | None = None


class Name(NamedTuple):
    """A name beside a point: position, distance in pixels, and CSS classes."""

    x: float
    y: float
    dx: float
    text: str
    kind: str


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
    height: float = HEIGHT
    x_ticks: Sequence[Tick] = ()
    y_ticks: Sequence[Tick] = ()
    lines: Sequence[Line] = ()
    bars: Sequence[Bar] = ()
    points: Sequence[Point] = ()
    names: Sequence[Name] = ()
    shape: str = ""  # "rows": names of rows instead of numbers on the vertical axis


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


def isolated(name: str, limit: int = 40) -> str:
    """Return the start of a name between characters that isolate its writing direction.

    A tooltip is plain text, in which no element can do this.
    """
    return f"\u2068{shorten(name, limit)}\u2069"


def path_of(points: Sequence[tuple[float, float]]) -> str:
    """Return a path through points.

    Examples
    --------
    >>> path_of([(0, 1), (2, 3)])
    'M0 1L2 3'
    """
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points) if len(points) else ""


def tone_of(row: dict[str, Any]) -> str:
    """Return the CSS class of a worker: "bad", "warn" or none, by the severest finding."""
    tone: str = row.get("tone", "bad" if row["flags"] else "")
    return tone


def names_beside(points: Sequence[Point], names: Sequence[str]) -> list[Name]:
    """Return the names of conspicuous points where they cover neither points nor each other."""
    taken = [(p.x - 1.2, p.y - 5, p.x + 1.2, p.y + 5) for p in points]
    placed: list[Name] = []
    for point, name in zip(points, names, strict=True):
        if not point.kind or len(placed) == MOST_NAMES:
            continue
        wide = 100 * LETTER * min(len(name), 16) / COLUMN
        for dx, dy in ((8, 4), (-8, 4), (8, -8), (-8, -8), (8, 15), (-8, 15)):
            left = point.x + 1.5 if dx > 0 else point.x - 1.5 - wide
            box = (left, point.y + dy - LINE + 3, left + wide, point.y + dy + 3)
            inside = box[0] >= 0 and box[2] <= WIDTH + 2
            if inside and not any(_cover(box, other) for other in taken):
                taken.append(box)
                side = "" if dx > 0 else " end"
                text = isolated(name, 16)
                placed.append(Name(point.x, round(point.y + dy, 1), dx, text, point.kind + side))
                break
    return placed


def _cover(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Return round numbers within a range.

    Examples
    --------
    >>> ticks(-0.9, 2.1)
    [-0.5, 0.0, 0.5, 1.0, 1.5, 2.0]
    """
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(power * s for s in (1, 2, 5, 10) if power * s >= rough)
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    return [float(f"{n * step:.10g}") + 0.0 for n in np.arange(first, last + 1)]


def _share_axis(low: float, high: float) -> tuple[Scale, list[Tick]]:
    """Return a vertical scale of shares that starts at a multiple of 0.1, and its ticks."""
    bottom = max(0.0, np.floor(low * 10 - 1e-9) / 10)
    top = min(1.0, np.ceil(high * 10 + 1e-9) / 10)
    if top - bottom < 0.2 - 1e-9:
        bottom = max(0.0, top - 0.2)
    scale = Scale(bottom, top, HEIGHT, TOP)
    step = 0.1 if top - bottom <= 0.6 else 0.2
    values = np.arange(round(bottom / step), round(top / step) + 1) * step
    inside = [v for v in values.tolist() if bottom - 1e-9 <= v <= top + 1e-9]
    return scale, [Tick(scale(v), f"{100 * v:.0f} %") for v in inside]


def _powers(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10 … within a range, powers of ten if it is wide, more if it is narrow.

    Examples
    --------
    >>> _powers(3, 60), _powers(70, 120)
    ([5.0, 10.0, 20.0, 50.0], [70.0, 80.0, 90.0, 100.0, 110.0, 120.0])
    """
    steps = (1, 2, 5) if high / max(low, 1) < 200 else (1,)
    found = [s * 10.0**p for p in range(-1, 9) for s in steps]
    inside = [value for value in found if low <= value <= high]
    return inside if len(inside) > 2 else _counts(low, high)


def _counts(low: float, high: float) -> list[float]:
    """Return round whole numbers within a range.

    Examples
    --------
    >>> _counts(39, 40), _counts(20, 31)
    ([39.0, 40.0], [20.0, 22.0, 24.0, 26.0, 28.0, 30.0])
    """
    return [value for value in ticks(low, high) if value > 0 and value == round(value)]


def quality_against_volume(
    rows: Sequence[dict[str, Any]], guessing: float | None = None
) -> Chart | None:
    """Return a chart of workers as dots; intervals, which known answers give, are bars."""
    known = [n for n, r in enumerate(rows) if _share(r) is not None and r["n_labels"] > 0]
    if not known:
        return None
    shares = {n: float(_share(rows[n]) or 0.0) for n in known}
    words = "share of right labels" if "accuracy" in rows[known[0]] else "agreement with the result"
    volume = [rows[n]["n_labels"] for n in known]
    log = max(volume) >= LEAST_RATIO * min(volume)
    x = Scale(min(volume), max(volume), INSET, WIDTH - INSET, log=log)
    ends = {n: (float(rows[n]["low"]), float(rows[n]["high"])) for n in known
            if rows[n].get("low") is not None}  # fmt: skip
    y, y_ticks = _share_axis(min(ends[n][0] if n in ends else shares[n] for n in known), 1.0)
    lines = [
        Line("".join(
            path_of([(x(rows[n]["n_labels"]), y(end)) for end in ends[n]])
            for n in ends
            if tone_of(rows[n]) == tone
        ), f"interval {tone}")
        for tone in ("", "warn", "bad")
    ]  # fmt: skip
    if guessing is not None and y(guessing) <= HEIGHT:
        lines.append(Line(path_of([(0, y(guessing)), (WIDTH, y(guessing))]), "ideal"))
    points = [
        Point(
            x(row["n_labels"]), y(shares[n]),
            f"{isolated(row['worker'])}: {words} {100 * shares[n]:.0f} %, "
            f"{row['n_labels']} labels{found_of(row)}",
            tone_of(row), n,
        )
        for n, row in ((n, rows[n]) for n in known)
    ]  # fmt: skip
    marks = (_powers if log else _counts)(min(volume), max(volume)) or [float(min(volume))]
    return Chart(
        f"{len(known)} workers: {words} against number of labels; the table has the same numbers.",
        f"labels given{' (logarithmic)' if log else ''}", words,
        x_ticks=[Tick(x(v), f"{v:g}") for v in marks],
        y_ticks=y_ticks, lines=lines, points=points,
        names=names_beside(points, [rows[n]["worker"] for n in known]),
    )  # fmt: skip


def _share(row: dict[str, Any]) -> float | None:
    """Return the share of a worker's labels that is right by known answers, or that agrees."""
    value: float | None = row["accuracy"] if "accuracy" in row else row["agreement_with_result"]
    return value


def found_of(row: dict[str, Any]) -> str:
    """Return a worker's findings, as the end of a sentence."""
    return f"; {', '.join(row['flags'])}" if row["flags"] else ""


def columns(
    rows: Sequence[tuple[str, float]], says: str, x_label: str, y_label: str
) -> Chart | None:
    """Return a chart of counts as vertical bars."""
    if not rows:
        return None
    most = max(value for _, value in rows) or 1
    y = Scale(0, most, COLUMNS, 18)
    step = WIDTH / len(rows)
    bars, names = [], []
    for n, (name, value) in enumerate(rows):
        left = n * step
        bars.append(
            Bar(
                round(left + 0.12 * step, 1), y(value), round(0.76 * step, 1),
                round(COLUMNS - y(value), 1), f"{value:,.0f}".replace(",", "\u202f"),
            )
        )  # fmt: skip
        names.append(Tick(round(left + step / 2, 1), name))
    return Chart(says, x_label, y_label, height=COLUMNS, x_ticks=names, bars=bars)


def reliability(rows: Sequence[dict[str, Any]]) -> Chart:
    """Return a chart of accuracy against stated confidence, with the line where both are equal."""
    low = min(min(row["low"], row["confidence"]) for row in rows)
    y, y_ticks = _share_axis(low, 1.0)
    start = min(row["confidence"] for row in rows)
    x = Scale(start, 1.0, INSET, WIDTH - INSET)
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
    inside = [v for v in ticks(start, 1.0, 6) if x(v) > 0]
    return Chart(
        "Accuracy against confidence; on the dashed line both are equal.",
        "confidence", "accuracy",
        x_ticks=[Tick(x(v), f"{100 * v:.0f} %") for v in inside],
        y_ticks=y_ticks,
        lines=[
            Line(path_of([(x(start), y(start)), (x(1.0), y(1.0))]), "ideal"),
            Line(spread, "interval"),
            Line(path_of([(p.x, p.y) for p in points])),
        ],
        points=points,
    )  # fmt: skip


def budget_curve(points: Sequence[dict[str, Any]], now: float) -> Chart:
    """Return a chart of mean confidence against labels per task; the simulated part is dashed."""
    measured = [p for p in points if p["measured"] is not None]
    values = [p["confidence"] for p in points] + [p["measured"] for p in measured]
    y, y_ticks = _share_axis(min(values), max(values))
    last = max(p["labels"] for p in points)
    x = Scale(0, last, 0, WIDTH - INSET)
    past = [(x(p["labels"]), y(p["confidence"])) for p in points if p["labels"] <= now + 1e-9]
    future = [(x(p["labels"]), y(p["confidence"])) for p in points if p["labels"] >= now - 1e-9]
    step = max(1, int(np.ceil(last / 10)))
    return Chart(
        "Mean confidence against labels per task; the vertical line is the current number.",
        "labels per task", "mean confidence",
        x_ticks=[Tick(x(v), str(v)) for v in range(0, int(last) + 1, step)],
        y_ticks=y_ticks,
        lines=[
            Line(path_of([(x(now), TOP), (x(now), HEIGHT)]), "now"),
            Line(path_of(past)),
            Line(path_of(future), "simulated"),
        ],
        points=[
            Point(x(p["labels"]), y(p["confidence"]), f"{p['labels']:.1f} labels per task")
            for p in points
        ]
        + [
            Point(x(p["labels"]), y(p["measured"]), "measured by known classes", "accent")
            for p in measured
        ],
    )  # fmt: skip


def sparkline(values: Sequence[float]) -> str:
    """Return the path of a sparkline of 120 × 30 pixels, whose height is the range from 0 to 1."""
    step = 120 / max(len(values) - 1, 1)
    return path_of([(round(n * step, 1), round(29 - 28 * v, 1)) for n, v in enumerate(values)])
