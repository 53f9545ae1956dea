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
    "check_fit": "fit",
    "clean": "pruning",
    "collapse_clones": "clones",
    "doubt_fit": "fit",  # the previous name of check_fit
    "estimate_accuracy": "accuracy",
    "find_clones": "clones",
    "find_collusion": "collusion",
    "find_dependent_groups": "groups",
    "find_drift": "drift",
    "find_fast_workers": "response_times",
    "find_label_outliers": "label_distribution",
    "find_spammers": "spammers",
    "find_temperature": "temperature",
    "identifiability_report": "identifiability",
    "measure_agreement": "agreement_report",
    "prune": "pruning",
}

if TYPE_CHECKING:
    from wisecrowd.audit.accuracy import estimate_accuracy as estimate_accuracy
    from wisecrowd.audit.agreement_report import measure_agreement as measure_agreement
    from wisecrowd.audit.clones import collapse_clones as collapse_clones
    from wisecrowd.audit.clones import find_clones as find_clones
    from wisecrowd.audit.collusion import find_collusion as find_collusion
    from wisecrowd.audit.crowd_audit import Audit as Audit
    from wisecrowd.audit.crowd_audit import Findings as Findings
    from wisecrowd.audit.crowd_audit import audit_crowd as audit_crowd
    from wisecrowd.audit.drift import find_drift as find_drift
    from wisecrowd.audit.fit import check_fit as check_fit
    from wisecrowd.audit.fit import doubt_fit as doubt_fit
    from wisecrowd.audit.groups import find_dependent_groups as find_dependent_groups
    from wisecrowd.audit.identifiability import identifiability_report as identifiability_report
    from wisecrowd.audit.label_distribution import find_label_outliers as find_label_outliers
    from wisecrowd.audit.part import Part as Part
    from wisecrowd.audit.pruning import clean as clean
    from wisecrowd.audit.pruning import prune as prune
    from wisecrowd.audit.response_times import find_fast_workers as find_fast_workers
    from wisecrowd.audit.spammers import find_spammers as find_spammers
    from wisecrowd.audit.temperature import find_temperature as find_temperature
    from wisecrowd.core.findings import Finding as Finding


def __getattr__(name: str) -> Any:
    if name in LOCATIONS:
        return getattr(importlib.import_module(f"wisecrowd.audit.{LOCATIONS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(LOCATIONS)
