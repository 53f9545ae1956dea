"""Audit of a crowd: spammers, colluders, agreement and identifiability."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Public name → module, loaded on first use. No function has the name of its module, because the
# imported module would hide the function.
LOCATIONS = {
    "Audit": "crowd_audit",
    "Finding": "crowd_audit",
    "Findings": "crowd_audit",
    "Part": "part",
    "audit_crowd": "crowd_audit",
    "check_connectivity": "pair_connectivity",
    "check_fit": "fit",
    "clean": "pruning",
    "collapse_clones": "clones",
    "drop_after": "late_labels",
    "doubt_fit": "fit",  # the previous name of check_fit
    "measure_confidence": "confidence",
    "find_attacked_tasks": "attacked_tasks",
    "find_bad_voters": "pair_voters",
    "find_biased_graders": "ordered_bias",
    "find_biased_workers": "number_bias",
    "find_clones": "clones",
    "find_collusion": "collusion",
    "find_contradictions": "contradictions",
    "find_cycles": "cycles",
    "find_dependent_groups": "groups",
    "find_drift": "drift",
    "find_extreme_graders": "ordered_extremes",
    "find_fast_workers": "response_times",
    "find_group_gaps": "group_gaps",
    "find_label_outliers": "label_distribution",
    "find_number_spammers": "number_spammers",
    "find_rare_classes": "rare_classes",
    "find_sequence_copies": "sequence_copies",
    "find_sequence_spammers": "sequence_spammers",
    "find_one_box_workers": "set_habits",
    "find_set_spammers": "set_spammers",
    "find_shared_errors": "shared_errors",
    "find_side_bias": "pair_sides",
    "find_spammers": "spammers",
    "find_span_habits": "sequence_habits",
    "find_temperature": "temperature",
    "find_tie_habits": "pair_ties",
    "identifiability_report": "identifiability",
    "judge_workers": "workers_by_gold",
    "measure_agreement": "agreement_report",
    "measure_sequence_agreement": "sequence_agreement",
    "measure_set_agreement": "set_agreement_report",
    "prune": "pruning",
}

if TYPE_CHECKING:
    from wisecrowd.audit.agreement_report import measure_agreement as measure_agreement
    from wisecrowd.audit.attacked_tasks import find_attacked_tasks as find_attacked_tasks
    from wisecrowd.audit.clones import collapse_clones as collapse_clones
    from wisecrowd.audit.clones import find_clones as find_clones
    from wisecrowd.audit.collusion import find_collusion as find_collusion
    from wisecrowd.audit.confidence import measure_confidence as measure_confidence
    from wisecrowd.audit.contradictions import find_contradictions as find_contradictions
    from wisecrowd.audit.crowd_audit import Audit as Audit
    from wisecrowd.audit.crowd_audit import Findings as Findings
    from wisecrowd.audit.crowd_audit import audit_crowd as audit_crowd
    from wisecrowd.audit.cycles import find_cycles as find_cycles
    from wisecrowd.audit.drift import find_drift as find_drift
    from wisecrowd.audit.fit import check_fit as check_fit
    from wisecrowd.audit.fit import doubt_fit as doubt_fit
    from wisecrowd.audit.group_gaps import find_group_gaps as find_group_gaps
    from wisecrowd.audit.groups import find_dependent_groups as find_dependent_groups
    from wisecrowd.audit.identifiability import identifiability_report as identifiability_report
    from wisecrowd.audit.label_distribution import find_label_outliers as find_label_outliers
    from wisecrowd.audit.late_labels import drop_after as drop_after
    from wisecrowd.audit.number_bias import find_biased_workers as find_biased_workers
    from wisecrowd.audit.number_spammers import find_number_spammers as find_number_spammers
    from wisecrowd.audit.ordered_bias import find_biased_graders as find_biased_graders
    from wisecrowd.audit.ordered_extremes import find_extreme_graders as find_extreme_graders
    from wisecrowd.audit.pair_connectivity import check_connectivity as check_connectivity
    from wisecrowd.audit.pair_sides import find_side_bias as find_side_bias
    from wisecrowd.audit.pair_ties import find_tie_habits as find_tie_habits
    from wisecrowd.audit.pair_voters import find_bad_voters as find_bad_voters
    from wisecrowd.audit.part import Part as Part
    from wisecrowd.audit.pruning import clean as clean
    from wisecrowd.audit.pruning import prune as prune
    from wisecrowd.audit.rare_classes import find_rare_classes as find_rare_classes
    from wisecrowd.audit.response_times import find_fast_workers as find_fast_workers
    from wisecrowd.audit.sequence_agreement import (
        measure_sequence_agreement as measure_sequence_agreement,
    )
    from wisecrowd.audit.sequence_copies import find_sequence_copies as find_sequence_copies
    from wisecrowd.audit.sequence_habits import find_span_habits as find_span_habits
    from wisecrowd.audit.sequence_spammers import find_sequence_spammers as find_sequence_spammers
    from wisecrowd.audit.set_agreement_report import measure_set_agreement as measure_set_agreement
    from wisecrowd.audit.set_habits import find_one_box_workers as find_one_box_workers
    from wisecrowd.audit.set_spammers import find_set_spammers as find_set_spammers
    from wisecrowd.audit.shared_errors import find_shared_errors as find_shared_errors
    from wisecrowd.audit.spammers import find_spammers as find_spammers
    from wisecrowd.audit.temperature import find_temperature as find_temperature
    from wisecrowd.audit.workers_by_gold import judge_workers as judge_workers
    from wisecrowd.core.findings import Finding as Finding


def __getattr__(name: str) -> Any:
    if name in LOCATIONS:
        return getattr(importlib.import_module(f"wisecrowd.audit.{LOCATIONS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(LOCATIONS)
