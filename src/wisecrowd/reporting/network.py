"""Network of suspected collusion: pairs of workers who agree more than skill explains."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.core.ids.encoding import lookup
from wisecrowd.reporting.study import Study
from wisecrowd.reporting.text import shown

MOST_NODES = 60
MOST_EDGES = 250
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
    """Return nodes and edges of linked pairs, up to a limit; members of groups come first."""
    edges = linked[:MOST_EDGES]
    ends = lookup(np.concatenate([part.first[edges], part.second[edges]]), study.labels.workers)
    nodes, seen = np.unique(ends, return_counts=True)
    group = part.cluster[nodes]
    kept = nodes[np.lexsort((-seen, group < 0))][:MOST_NODES]
    kept = kept[np.lexsort((kept, part.cluster[kept]))]
    place = {int(j): n for n, j in enumerate(kept.tolist())}
    pairs = ends.reshape(2, -1).T.tolist()
    return {
        "nodes": [
            {"worker": shown(study.labels.workers[j : j + 1].tolist()[0]), "group": int(c)}
            for j, c in zip(kept.tolist(), part.cluster[kept].tolist(), strict=True)
        ],
        "edges": [[place[a], place[b]] for a, b in pairs if a in place and b in place],
    }
