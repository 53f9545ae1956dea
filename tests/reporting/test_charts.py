from __future__ import annotations

import pytest

from wisecrowd.reporting.charts import (
    BOTTOM,
    HEIGHT,
    LEFT,
    TOP,
    WIDTH,
    Scale,
    budget_curve,
    columns,
    network_drawing,
    quality_against_volume,
    reliability,
)


def row(worker, n, accuracy, flags=()):
    return {
        "worker": worker, "n_labels": n, "accuracy": accuracy, "low": accuracy - 0.1,
        "high": accuracy + 0.1, "flags": list(flags),
    }  # fmt: skip


def test_a_constant_has_a_place_too():
    assert Scale(3, 3, 0, 10)(3) == 0.0


def test_better_workers_are_higher_and_busier_ones_to_the_right():
    rows = [row("a", 10, 0.5, ["spammers"]), row("b", 1000, 0.9)]
    chart = quality_against_volume(rows)
    bad, good = chart.points
    assert bad.x < good.x
    assert bad.y > good.y
    assert (bad.kind, good.kind) == ("bad", "")
    assert chart.lines[0].path.count("M") == 2
    assert all(LEFT <= p.x <= WIDTH and TOP <= p.y <= HEIGHT - BOTTOM for p in chart.points)
    assert quality_against_volume([]) is None


def test_bars_are_in_proportion():
    first, second = columns([("one", 10), ("two", 5)], "", "", "").bars
    assert first.height == pytest.approx(2 * second.height)
    assert columns([], "", "", "") is None


def test_a_perfectly_calibrated_point_is_on_the_line():
    rows = [
        {"confidence": c, "accuracy": c, "low": c - 0.1, "high": c, "count": 9} for c in (0.6, 1.0)
    ]
    chart = reliability(rows)
    ends = chart.lines[0].path
    assert ends == chart.lines[2].path


def test_the_future_is_dashed_from_the_present_on():
    points = [
        {"labels": x, "accuracy": 0.5 + x / 20, "measured": 0.6 if x == 1 else None}
        for x in (1.0, 3.0, 4.0)
    ]
    chart = budget_curve(points, 3.0)
    assert chart.lines[1].path.split("L")[-1] == chart.lines[2].path[1:].split("L")[0]
    assert len(chart.points) == 4


def test_network_of_nobody():
    assert network_drawing({"nodes": [], "edges": []}) is None
