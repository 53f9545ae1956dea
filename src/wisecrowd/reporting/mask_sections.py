"""Sections of the page on masks, and the commands that address its findings."""

from __future__ import annotations

from wisecrowd.reporting import kind_charts
from wisecrowd.reporting.kind_sections import NUMBER_SECTIONS
from wisecrowd.reporting.sections import Data
from wisecrowd.reporting.summary import Summary


def _nothing(summary: Summary) -> Data:
    return {}


def _workers(summary: Summary) -> Data:
    rows = summary["workers"]["rows"]
    return {
        "chart": kind_charts.extent_of_workers(rows),
        "flags": sorted({flag for row in rows for flag in row["flags"]}),
        "has_kind": any(row["kind"] is not None for row in rows),
    }


MASK_SECTIONS = {
    "verdict": ("Verdict", _nothing, "mask_verdict"),
    "next": NUMBER_SECTIONS["next"],
    "workers": ("Workers: extent and overlap", _workers, "mask_workers"),
    "tasks": ("Images people disagree about", _nothing, "mask_images"),
    "methods": NUMBER_SECTIONS["methods"],
    "health": NUMBER_SECTIONS["health"],
    "reproduce": NUMBER_SECTIONS["reproduce"],
}
MASK_COMMANDS = {
    "wide-masks": "aggregate {file} -m mask-em -o consensus.csv",
    "tight-masks": "aggregate {file} -m mask-em -o consensus.csv",
    "masks-apart": "audit {file} --part agreement -o audit",
    "low-overlap": "audit {file} --part agreement -o audit",
}
MASK_CALLS = {
    "masks-apart": 'wc.audit.audit_crowd(labels, parts=["agreement"]).tables()',
    "low-overlap": 'wc.audit.audit_crowd(labels, parts=["agreement"]).tables()',
    "": 'wc.aggregate(labels, "mask-em")',
}
MASK_WORKER_FINDINGS = ("wide-masks", "tight-masks", "masks-apart")
