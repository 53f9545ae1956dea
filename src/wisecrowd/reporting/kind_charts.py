"""Charts of numbers, pairs, ordered classes and spans: estimates with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wisecrowd.reporting.charts import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Chart,
    Line,
    Point,
    Scale,
    Tick,
    isolated,
    path_of,
)
from wisecrowd.reporting.text import number, shorten

NAMES = 150.0  # width of the names of items
ROW = 20.0  # height of an item
MOST_ROWS = 40


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


def bias_and_noise(rows: Sequence[dict[str, Any]]) -> Chart | None:
    """Return a chart of workers as dots, bias against noise, with both intervals as bars."""
    known = [row for row in rows if row["bias"] is not None and row["noise"] is not None]
    if not known:
        return None
    bias = [row["bias"] for row in known]
    ends = [end for row in known for end in (row["bias_low"], row["bias_high"]) if end is not None]
    noise = [row["noise"] for row in known]
    # An interval from two or three labels would hide all others.
    reach = 1.5 * (max(map(abs, bias)) or 1.0)
    low, high = max(min([*ends, 0.0]), -reach), min(max([*ends, 0.0]), reach)
    top = min(max(row["noise_high"] or row["noise"] for row in known), 1.5 * max(noise)) or 1.0
    x = Scale(low, high, LEFT + 12, WIDTH - RIGHT - 12)
    y = Scale(0.0, top, HEIGHT - BOTTOM, TOP)
    lines = "".join(_cross(row, x, y, (low, high), top) for row in known)
    points = [
        Point(
            x(row["bias"]), y(row["noise"]),
            f"{isolated(row['worker'])}: bias {number(row['bias'])}, noise "
            f"{number(row['noise'])}, {row['n_labels']} labels",
            "bad" if row["flags"] else "",
        )
        for row in known
    ]  # fmt: skip
    zero = path_of([(x(0.0), TOP), (x(0.0), HEIGHT - BOTTOM)])
    return Chart(
        f"{len(known)} workers: bias against noise, with 95 % intervals; the table below has the "
        "same numbers.",
        "bias: mean difference from the others", "noise",
        x_ticks=[Tick(x(v), f"{v:g}") for v in ticks(low, high)],
        y_ticks=[Tick(y(v), f"{v:g}") for v in ticks(0.0, top)],
        lines=[Line(zero, "now"), Line(lines, "interval")],
        points=points,
    )  # fmt: skip


def _cross(row: dict[str, Any], x: Scale, y: Scale, ends: tuple[float, float], top: float) -> str:
    """Return the path of both intervals of a worker, cut at the ends of the chart."""
    found = ""
    if row["bias_low"] is not None and row["bias_high"] is not None:
        low, high = max(row["bias_low"], ends[0]), min(row["bias_high"], ends[1])
        found += path_of([(x(low), y(row["noise"])), (x(high), y(row["noise"]))])
    if row["noise_low"] is not None and row["noise_high"] is not None:
        across, high = x(row["bias"]), min(row["noise_high"], top)
        found += path_of([(across, y(row["noise_low"])), (across, y(high))])
    return found


def scores_by_rank(rows: Sequence[dict[str, Any]]) -> Chart | None:
    """Return a chart of the best items: score, 95% interval, and the range of ranks as text."""
    names = [row["item"] for row in rows]
    texts = [
        f"{isolated(row['item'])}: score {number(row['score'])}, rank {row['rank']} "
        f"({row['rank_low']} to {row['rank_high']})"
        for row in rows
    ]
    bad = [row["component"] > 0 for row in rows]
    return _intervals(
        rows, names, texts, bad, "score",
        f"Scores of {min(len(rows), MOST_ROWS)} items with 95 % intervals, best first; the table "
        "below has the same numbers.", "score (logits)",
    )  # fmt: skip


def bias_by_worker(rows: Sequence[dict[str, Any]]) -> Chart | None:
    """Return a chart of the biases of workers with 95% intervals, largest first."""
    names = [row["worker"] for row in rows]
    texts = [f"{isolated(row['worker'])}: bias {number(row['bias'])}" for row in rows]
    return _intervals(
        rows, names, texts, [bool(row["flags"]) for row in rows], "bias",
        f"Bias of {min(len(rows), MOST_ROWS)} workers with 95 % intervals, largest first; the "
        "table below has the same numbers.", "bias (classes)",
    )  # fmt: skip


def reliability_of_voters(rows: Sequence[dict[str, Any]]) -> Chart | None:
    """Return a chart of the reliability of the busiest workers with 95% intervals."""
    known = [row for row in rows if row.get("reliability") is not None and row["n_labels"] > 1]
    names = [row["worker"] for row in known]
    texts = [
        f"{isolated(row['worker'])}: {number(row['reliability'])}, {row['n_labels']} votes"
        for row in known
    ]
    return _intervals(
        known, names, texts, [bool(row["flags"]) for row in known], "reliability",
        f"Reliability of {min(len(known), MOST_ROWS)} workers with 95 % intervals, most votes "
        "first; the table below has the same numbers.", "reliability (1: as the others, 0: random)",
    )  # fmt: skip


def agreement_on_spans(rows: Sequence[dict[str, Any]]) -> Chart | None:
    """Return a chart of the agreement of the busiest workers with the others, with intervals."""
    known = [row for row in rows if row.get("agreement") is not None and row["n_labels"] > 1]
    names = [row["worker"] for row in known]
    texts = [
        f"{isolated(row['worker'])}: {number(row['agreement'])}, {row['n_labels']} texts"
        for row in known
    ]
    return _intervals(
        known, names, texts, [bool(row["flags"]) for row in known], "agreement",
        f"Agreement of {min(len(known), MOST_ROWS)} workers with the others, token by token, with "
        "95 % intervals, most texts first; the table below has the same numbers.",
        "agreement beyond chance (1: perfect, 0: chance)",
    )  # fmt: skip


def _intervals(
    rows: Sequence[dict[str, Any]], names: Sequence[str], texts: Sequence[str],
    bad: Sequence[bool], value: str, says: str, label: str,
) -> Chart | None:  # fmt: skip
    """Return a chart with one row per name: a dot and its interval from left to right."""
    count = min(len(rows), MOST_ROWS)
    if not count:
        return None
    part = rows[:count]
    height = TOP + ROW * count + BOTTOM
    middle = [row[value] for row in part]
    span = 3 * (max(map(abs, middle)) or 1.0)
    low = max(min([row["low"] for row in part if row["low"] is not None] + middle), -span)
    high = min(max([row["high"] for row in part if row["high"] is not None] + middle), span)
    low, high = min(low, 0.0), max(high, 0.0)
    x = Scale(low, high, NAMES + 12, WIDTH - RIGHT - 12)
    at = [round(TOP + ROW * (n + 0.5), 1) for n in range(count)]
    bars = "".join(
        path_of([(x(max(row["low"], low)), at[n]), (x(min(row["high"], high)), at[n])])
        for n, row in enumerate(part)
        if row["low"] is not None and row["high"] is not None
    )
    zero = path_of([(x(0.0), TOP), (x(0.0), height - BOTTOM)])
    return Chart(
        says, label,
        height=height,
        x_ticks=[Tick(x(v), f"{v:g}") for v in ticks(low, high)],
        y_ticks=[Tick(at[n], shorten(names[n], 22)) for n in range(count)],
        lines=[Line(zero, "now"), Line(bars, "interval")],
        points=[
            Point(x(middle[n]), at[n], texts[n], "bad" if bad[n] else "") for n in range(count)
        ],
        frame=(NAMES, TOP, WIDTH - RIGHT, height - BOTTOM),
    )  # fmt: skip
