"""Lenient and harsh workers of ordered classes, for the report."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.reporting.study import Study
from wisecrowd.reporting.text import shown
from wisecrowd.reporting.worker_rows import number

MOST_WORKERS = 200


def grader_bias(study: Study) -> dict[str, Any]:
    """Return bias and use of the ends of the scale for each worker, largest bias first."""
    part: Any = study.audit.parts.get("bias")
    ends: Any = study.audit.parts.get("extremes")
    if part is None:
        return {"reason": shown(study.audit.skipped.get("bias", "")), "rows": [], "total": 0,
                "n_shown": 0, "n_beyond": 0, "n_strong": 0, "has_ends": False}  # fmt: skip
    order = np.argsort(-np.abs(np.nan_to_num(part.bias)), kind="stable")
    order = order[part.n_labels[order] > 1]
    return {
        "reason": None,
        "total": len(order),
        "n_shown": min(len(order), MOST_WORKERS),
        "n_beyond": int(((part.low > 0) | (part.high < 0))[order].sum()),
        "n_strong": int(part.strongly[order].sum()),
        "has_ends": ends is not None,
        "rows": [
            {
                "worker": shown(part.workers[j : j + 1].tolist()[0]),
                "n_labels": int(part.n_labels[j]),
                "bias": number(part.bias[j], 3),
                "low": number(part.low[j], 3), "high": number(part.high[j], 3),
                "flags": ["biased-workers"] if part.strongly[j] else [],
                "ends": None if ends is None else number(ends.share[j], 3),
                "expected_ends": None if ends is None else number(ends.expected[j], 3),
            }
            for j in order[:MOST_WORKERS].tolist()
        ],
    }  # fmt: skip
