"""Audit of classes: a function for each question; adding one is the function and one line here."""

from __future__ import annotations

from wisecrowd.audit.group_gaps import find_group_gaps
from wisecrowd.core.part import AuditPlan
from wisecrowd.kinds.classes.audit.agreement_report import measure_agreement
from wisecrowd.kinds.classes.audit.attacked_tasks import find_attacked_tasks
from wisecrowd.kinds.classes.audit.clones import (
    find_clones,
    find_dependent_groups,
    find_model_crowd,
)
from wisecrowd.kinds.classes.audit.collusion import find_collusion
from wisecrowd.kinds.classes.audit.confidence import measure_confidence
from wisecrowd.kinds.classes.audit.drift import find_drift
from wisecrowd.kinds.classes.audit.fit import check_fit
from wisecrowd.kinds.classes.audit.identifiability import identifiability_report
from wisecrowd.kinds.classes.audit.label_distribution import find_label_outliers, find_rare_classes
from wisecrowd.kinds.classes.audit.response_times import find_fast_workers
from wisecrowd.kinds.classes.audit.shared import compared_workers, fit_with_law
from wisecrowd.kinds.classes.audit.spammers import find_spammers
from wisecrowd.kinds.classes.audit.workers_by_gold import judge_workers

PLAN = AuditPlan(
    parts={
        "spammers": find_spammers,
        "clones": find_clones,
        "collusion": find_collusion,
        "attacked-tasks": find_attacked_tasks,
        "groups": find_dependent_groups,
        "label-distribution": find_label_outliers,
        "response-times": find_fast_workers,
        "drift": find_drift,
        "rare-classes": find_rare_classes,
        "group-gaps": find_group_gaps,
        "models": find_model_crowd,
        "agreement": measure_agreement,
        "confidence": measure_confidence,
        "workers": judge_workers,
        "identifiability": identifiability_report,
        "fit": check_fit,
    },
    shared={
        "fit": fit_with_law,
        "found": compared_workers,
    },
    prunable=("clones", "collusion", "spammers"),
)
