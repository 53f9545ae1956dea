"""Audit of numbers: a file for each group of questions, and a line here for each question."""

from __future__ import annotations

from wisecrowd.core.part import AuditPlan
from wisecrowd.kinds.numbers.audit.evidence import check_scale, measure_evidence
from wisecrowd.kinds.numbers.audit.shared_errors import find_shared_errors
from wisecrowd.kinds.numbers.audit.view import number_view
from wisecrowd.kinds.numbers.audit.workers import find_biased_workers, find_number_spammers

PLAN = AuditPlan(
    parts={
        "spammers": find_number_spammers,
        "bias": find_biased_workers,
        "shared-errors": find_shared_errors,
        "scale": check_scale,
        "evidence": measure_evidence,
    },
    shared={"view": number_view},
    prunable=("spammers",),
)
