"""Audit of spans: a file for each group of questions, and a line here for each question."""

from __future__ import annotations

from wisecrowd.core.part import AuditPlan
from wisecrowd.kinds.sequences.audit.agreement import (
    find_sequence_copies,
    measure_sequence_agreement,
)
from wisecrowd.kinds.sequences.audit.view import sequence_view
from wisecrowd.kinds.sequences.audit.workers import find_sequence_spammers, find_span_habits

PLAN = AuditPlan(
    parts={
        "spammers": find_sequence_spammers,
        "habits": find_span_habits,
        "clones": find_sequence_copies,
        "agreement": measure_sequence_agreement,
    },
    shared={"view": sequence_view},
    prunable=("spammers",),
)
