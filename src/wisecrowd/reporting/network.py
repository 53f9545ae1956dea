"""Network of suspected collusion: pairs who agree more than skill explains, and its drawing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wisecrowd.core.ids.encoding import lookup
from wisecrowd.reporting.charts import isolated
from wisecrowd.reporting.display import shown
from wisecrowd.reporting.study import Study

MOST_NODES = 24  # of the drawing
MOST_ROWS = 40
LEAST_ROWS = 10  # shown even if no pair is linked


def network(study: Study) -> dict[str, Any]:
    """Return suspected groups, the linked pairs among them, and the most striking pairs."""
    part: Any = study.audit.parts.get("collusion")
    if part is None:
        return {"reason": study.audit.skipped.get("collusion", "Collusion was not checked.")}
    excess = part.agreement - part.expected
    order = np.lexsort((-excess, -part.z))
    linked = order[part.linked[order]]
    shown_rows = linked[:MOST_ROWS] if len(linked) > LEAST_ROWS else order[:LEAST_ROWS]
    return {
        "reason": None,
        "n_pairs": len(part.z),
        "n_linked": len(linked),
        "groups": [
            {"workers": [shown(w) for w in group[:20].tolist()], "size": len(group)}
            for group in part.clusters[:20]
        ],
        "graph": _graph(study, part, linked),
        "rows": [
            {
                "first": shown(part.first[p : p + 1].tolist()[0]),
                "second": shown(part.second[p : p + 1].tolist()[0]),
                "n_shared": int(part.n_shared[p]),
                "agreement": round(float(part.agreement[p]), 4),
                "expected": round(float(part.expected[p]), 4),
                "n_equal": round(float(part.n_shared[p] * part.agreement[p])),
                "n_expected": round(float(part.n_shared[p] * part.expected[p]), 1),
                "z": round(float(part.z[p]), 2),
                "q": float(f"{part.q[p]:.2g}"),
                "linked": bool(part.linked[p]),
            }
            for p in shown_rows.tolist()
        ],
    }


def _graph(study: Study, part: Any, linked: Any) -> dict[str, Any]:
    """Return workers and pairs of a drawing: groups first, then workers in surprising pairs."""
    first, second = (lookup(side, study.labels.workers) for side in (part.first, part.second))
    top = np.full(study.labels.n_workers, -np.inf)
    for ends in (first, second):
        np.maximum.at(top, ends, part.z)
    compared = np.flatnonzero(np.isfinite(top))
    group = np.where(part.cluster < 0, len(part.clusters), part.cluster)
    order = np.lexsort((compared, -top[compared].round(6), group[compared]))
    kept = compared[order][:MOST_NODES]
    place = np.full(study.labels.n_workers, -1)
    place[kept] = np.arange(len(kept))
    inside = np.flatnonzero((place[first] >= 0) & (place[second] >= 0))
    inside = inside[np.lexsort((place[second[inside]], place[first[inside]]))]
    among = linked[(place[first[linked]] >= 0) & (place[second[linked]] >= 0)]
    return {
        "nodes": [
            {"worker": shown(study.labels.workers[j : j + 1].tolist()[0]),
             "group": int(part.cluster[j])}
            for j in kept.tolist()
        ],
        "edges": [[int(place[first[p]]), int(place[second[p]])] for p in among.tolist()],
        "cells": [
            [int(place[first[p]]), int(place[second[p]]), round(float(part.z[p]), 2),
             round(float(part.agreement[p]), 3), round(float(part.expected[p]), 3)]
            for p in inside.tolist()
        ],
    }  # fmt: skip


# Standard errors from which a pair is shaded more, and the CSS class below the first of them.
SHADES = (-2.0, -1.0, 1.0, 2.0, 3.0, 4.0)
SMALL = 8  # workers up to which the drawing takes less than its column


class Cell(NamedTuple):
    """A pair of workers: column and row, shade, sentence, and whether the pair is suspicious."""

    x: int
    y: int
    shade: str
    text: str
    linked: bool


class NetworkDrawing(NamedTuple):
    """A triangle of pairs; names stand at the ends of the rows."""

    says: str
    size: int
    names: list[tuple[float, float, str, str]]
    cells: list[Cell]
    groups: list[tuple[int, int]]
    small: bool


def shade_of(z: float) -> str:
    """Return the CSS class of a number of standard errors.

    Examples
    --------
    >>> [shade_of(z) for z in (-2.5, 0.0, 1.5, 9.0)]
    ['z0', 'z2', 'z3', 'z6']
    """
    return f"z{sum(z >= limit for limit in SHADES)}"


def network_drawing(graph: dict[str, Any]) -> NetworkDrawing | None:
    """Return the drawing of a graph; members of a group are neighbours, and groups are framed."""
    nodes, size = graph["nodes"], len(graph["nodes"])
    if size < 2 or not graph.get("cells"):
        return None
    linked = {frozenset(pair) for pair in graph["edges"]}
    cells = []
    for a, b, z, agreement, expected in graph["cells"]:
        suspicious = frozenset((a, b)) in linked
        said = "linked, " if suspicious else ""
        cells.append(Cell(
            min(a, b), max(a, b) - 1, shade_of(z),
            f"{isolated(nodes[a]['worker'])} and {isolated(nodes[b]['worker'])}: {said}"
            f"{z:+.1f} standard errors, equal in {100 * agreement:.0f} %, expected "
            f"{100 * expected:.0f} %", suspicious,
        ))  # fmt: skip
    step = 100 / size
    groups, names = [], []
    for n, node in enumerate(nodes):
        tone = "bad" if node["group"] >= 0 else ""
        names.append((round(n * step, 2), round((n + 0.5) * step, 2), isolated(node["worker"], 14),
                      tone))  # fmt: skip
    for group in sorted({node["group"] for node in nodes if node["group"] >= 0}):
        members = [n for n, node in enumerate(nodes) if node["group"] == group]
        if len(members) > 1:
            groups.append((members[0], len(members) - 1))
    return NetworkDrawing(
        f"{len(cells)} pairs of {size} workers, shaded by how far they agree beyond what their "
        f"skill explains; {sum(cell.linked for cell in cells)} are suspicious. The table has the "
        "most surprising pairs.",
        size, names, cells, groups, size <= SMALL,
    )  # fmt: skip
