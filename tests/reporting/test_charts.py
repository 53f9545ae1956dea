from __future__ import annotations

from itertools import pairwise

import pytest

from wisecrowd.reporting.charts import (
    HEIGHT,
    TOP,
    WIDTH,
    Point,
    Scale,
    budget_curve,
    columns,
    names_beside,
    quality_against_volume,
    reliability,
)
from wisecrowd.reporting.network import network_drawing


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
    assert [line.path.count("M") for line in chart.lines] == [1, 0, 1]  # ordinary, warned, bad
    assert all(0 <= p.x <= WIDTH and TOP <= p.y <= HEIGHT for p in chart.points)
    assert [point.row for point in chart.points] == [0, 1]
    assert [name.text for name in chart.names] == ["\u2068a\u2069"]
    assert len(chart.x_ticks) == len({tick.text for tick in chart.x_ticks}) >= 3
    assert quality_against_volume([]) is None


@pytest.mark.parametrize(
    ("volumes", "texts", "label"),
    [
        ((39, 40), ["39", "40"], "labels given"),
        ((40, 40), ["40"], "labels given"),
        ((10, 100), ["10", "20", "50", "100"], "labels given (logarithmic)"),
    ],
)
def test_counts_have_whole_ticks_and_a_logarithm_only_if_they_differ(volumes, texts, label):
    rows = [
        {"worker": "w", "accuracy": 0.8, "low": 0.7, "high": 0.9, "n_labels": n, "flags": []}
        for n in volumes
    ]
    chart = quality_against_volume(rows)
    assert [tick.text for tick in chart.x_ticks] == texts
    assert chart.x_label == label


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
        {"labels": x, "confidence": 0.5 + x / 20, "measured": 0.6 if x == 1 else None}
        for x in (1.0, 3.0, 4.0)
    ]
    chart = budget_curve(points, 3.0)
    assert chart.lines[1].path.split("L")[-1] == chart.lines[2].path[1:].split("L")[0]
    assert len(chart.points) == 4


def test_names_cover_neither_points_nor_each_other():
    points = [Point(50.0, 100.0 + n, "", "bad") for n in range(40)]
    names = names_beside(points, [f"worker {n}" for n in range(40)])
    assert 1 <= len(names) < 16
    places = sorted((name.dx > 0, name.y) for name in names)
    assert all(b[0] != a[0] or b[1] - a[1] >= 13 for a, b in pairwise(places))


def test_network_is_a_triangle_with_its_suspicious_pairs():
    nodes = [{"worker": "a", "group": 0}, {"worker": "b", "group": 0}, {"worker": "c", "group": -1}]
    cells = [[0, 1, 5.0, 1.0, 0.4], [2, 0, 0.3, 0.5, 0.5], [1, 2, -2.4, 0.2, 0.5]]
    drawn = network_drawing({"nodes": nodes, "edges": [[1, 0]], "cells": cells})
    assert [(cell.x, cell.y) for cell in drawn.cells] == [(0, 0), (0, 1), (1, 1)]
    assert [cell.linked for cell in drawn.cells] == [True, False, False]
    assert [cell.shade for cell in drawn.cells] == ["z6", "z2", "z0"]
    assert drawn.groups == [(0, 1)]
    assert [name[3] for name in drawn.names] == ["bad", "bad", ""]


def test_network_of_nobody():
    assert network_drawing({"nodes": [], "edges": [], "cells": []}) is None
