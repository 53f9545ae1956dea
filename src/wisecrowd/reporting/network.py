"""Network of suspected collusion: pairs of workers who agree more than skill explains."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.core.ids.encoding import lookup
from wisecrowd.reporting.study import Study
from wisecrowd.reporting.text import shown

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
