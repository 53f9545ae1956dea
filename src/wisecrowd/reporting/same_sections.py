"""Sections of the page on sameness, and the commands and calls that address its findings."""

from __future__ import annotations

from wisecrowd.reporting.kind_sections import PAIR_SECTIONS, _flags, _nothing
from wisecrowd.reporting.sections import SECTIONS

# Name in the summary → heading, additional data for the template, and the template.
SAME_SECTIONS = {
    "verdict": ("Verdict", _nothing, "same_verdict"),
    "next": SECTIONS["next"],
    "clusters": ("Clusters", _nothing),
    "workers": ("Workers", _flags, "same_workers"),
    "contradictions": ("Contradictions", _nothing, "same_contradictions"),
    "methods": PAIR_SECTIONS["methods"],
    "health": PAIR_SECTIONS["health"],
    "reproduce": SECTIONS["reproduce"],
}
SAME_COMMANDS = {
    "intransitive-votes": "audit {file} --part transitivity -o audit",
    "pairs-beyond-clusters": "aggregate {file} -p max_clusters=30 -o clusters.csv",
}
SAME_CALLS = {
    "intransitive-votes": 'wc.audit.audit_crowd(labels, parts=["transitivity"]).tables()',
    "pairs-beyond-clusters": 'wc.aggregate(labels, "crowd-clustering", max_clusters=30)',
    "": 'wc.aggregate(labels, "crowd-clustering")',
}
SAME_WORKER_FINDINGS: tuple[str, ...] = ()
