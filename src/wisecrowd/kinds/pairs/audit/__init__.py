"""Audit of votes on pairs: a file for each group of questions, and a line for each question."""

from __future__ import annotations

from wisecrowd.core.part import AuditPlan
from wisecrowd.kinds.pairs.audit.consistency import (
    check_connectivity,
    find_contradictions,
    find_cycles,
)
from wisecrowd.kinds.pairs.audit.view import pair_view
from wisecrowd.kinds.pairs.audit.voters import find_bad_voters, find_side_bias, find_tie_habits

PLAN = AuditPlan(
    parts={
        "voters": find_bad_voters,
        "sides": find_side_bias,
        "ties": find_tie_habits,
        "contradictions": find_contradictions,
        "cycles": find_cycles,
        "connectivity": check_connectivity,
    },
    shared={"view": pair_view},
    prunable=("spammers",),
)
