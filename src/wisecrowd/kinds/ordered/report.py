"""Lenient and harsh workers of ordered classes, for the report."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.kinds.classes.report import PLAN as CLASSES
from wisecrowd.reporting.display import shown
from wisecrowd.reporting.health import health
from wisecrowd.reporting.kind_charts import bias_by_worker
from wisecrowd.reporting.plans import ReportPlan
from wisecrowd.reporting.sections import SECTIONS, Summary
from wisecrowd.reporting.study import Study
from wisecrowd.reporting.verdict import CALLS, COMMANDS, WORKER_FINDINGS
from wisecrowd.reporting.workers import number

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


def _bias(summary: Summary) -> dict[str, Any]:
    return {"chart": bias_by_worker(summary["bias"]["rows"])}


PLAN = ReportPlan(
    study=CLASSES.study,
    content={
        **{
            name: part
            for name, part in CLASSES.content.items()
            if name not in ("calibration", "budget", "health")
        },
        "bias": grader_bias,
        "health": health,
    },
    sections={
        **{
            name: section
            for name, section in SECTIONS.items()
            if name not in ("calibration", "budget", "health", "reproduce")
        },
        "bias": ("Lenient and harsh workers", _bias, "grader_bias"),
        "health": SECTIONS["health"],
        "reproduce": SECTIONS["reproduce"],
    },
    commands=COMMANDS
    | {
        "biased-workers": "aggregate {file} -m ordinal-latent -o labels.csv",
        "slightly-biased-workers": "aggregate {file} -m ordinal-latent -o labels.csv",
        "extreme-labels": "aggregate {file} -m ordinal-latent -o labels.csv",
        "avoided-ends": "aggregate {file} -m ordinal-latent -o labels.csv",
        "judges-apart": "aggregate {file} --gold gold.csv -o labels.csv",
    },
    calls=CALLS
    | {
        "biased-workers": 'wc.aggregate(labels, "ordinal-latent")',
        "slightly-biased-workers": 'wc.aggregate(labels, "ordinal-latent")',
        "extreme-labels": 'wc.aggregate(labels, "ordinal-latent")',
        "avoided-ends": 'wc.aggregate(labels, "ordinal-latent")',
        "judges-apart": "wc.aggregate(labels, gold=gold)",
        "": 'wc.aggregate(labels, "auto-ordered")',
    },
    worker_findings=(
        *WORKER_FINDINGS,
        "biased-workers",
        "extreme-labels",
        "avoided-ends",
    ),
    methods=("majority-vote", "dawid-skene", "auto-ordered", "thresholds", "ordinal-latent"),
    optional=CLASSES.optional,
)
