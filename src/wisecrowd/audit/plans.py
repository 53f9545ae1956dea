"""Plans of audits: for every kind its parts, what they share, and which workers can be removed.

The table of kinds (``wisecrowd.core.kinds``) names the plan of each kind.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.kinds import all_kinds, kind_of


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """What an audit of one kind consists of; functions are given as "module:function".

    Attributes
    ----------
    parts : mapping of name to function of (data, ...)
        See :class:`wisecrowd.audit.part.Part`.
    shared : mapping of keyword to function of (data, fit)
        What several parts take by this keyword. It is computed once, when first needed; ``fit`` is
        the fit that the user gave, or None.
    prunable : tuple of str
        What :func:`wisecrowd.audit.clean` can remove, in this order.
    """

    parts: Mapping[str, str]
    shared: Mapping[str, str] = field(default_factory=dict)
    prunable: tuple[str, ...] = ()


# Adding a part is one file and one line here.
CLASSES = AuditPlan(
    parts={
        "spammers": "wisecrowd.audit.spammers:find_spammers",
        "clones": "wisecrowd.audit.clones:find_clones",
        "collusion": "wisecrowd.audit.collusion:find_collusion",
        "attacked-tasks": "wisecrowd.audit.attacked_tasks:find_attacked_tasks",
        "groups": "wisecrowd.audit.groups:find_dependent_groups",
        "label-distribution": "wisecrowd.audit.label_distribution:find_label_outliers",
        "response-times": "wisecrowd.audit.response_times:find_fast_workers",
        "drift": "wisecrowd.audit.drift:find_drift",
        "rare-classes": "wisecrowd.audit.rare_classes:find_rare_classes",
        "group-gaps": "wisecrowd.audit.group_gaps:find_group_gaps",
        "models": "wisecrowd.audit.model_crowd:find_model_crowd",
        "agreement": "wisecrowd.audit.agreement_report:measure_agreement",
        "confidence": "wisecrowd.audit.confidence:measure_confidence",
        "workers": "wisecrowd.audit.workers_by_gold:judge_workers",
        "identifiability": "wisecrowd.audit.identifiability:identifiability_report",
        "fit": "wisecrowd.audit.fit:check_fit",
    },
    shared={
        "fit": "wisecrowd.audit.default_fit:fit_with_law",
        "found": "wisecrowd.audit.default_fit:compared_workers",
    },
    prunable=("clones", "collusion", "spammers"),
)
ORDERED = AuditPlan(
    parts={
        **{name: part for name, part in CLASSES.parts.items() if name != "confidence"},
        "spammers": "wisecrowd.audit.ordered_spammers:find_ordered_spammers",
        "fit": "wisecrowd.audit.ordered_fit:check_ordered_fit",
        "agreement": "wisecrowd.audit.ordered_agreement:measure_ordered_agreement",
        "bias": "wisecrowd.audit.ordered_bias:find_biased_graders",
        "extremes": "wisecrowd.audit.ordered_extremes:find_extreme_graders",
    },
    shared={**CLASSES.shared, "view": "wisecrowd.audit.number_view:view_of_grades"},
    prunable=CLASSES.prunable,
)
NUMBERS = AuditPlan(
    parts={
        "spammers": "wisecrowd.audit.number_spammers:find_number_spammers",
        "bias": "wisecrowd.audit.number_bias:find_biased_workers",
        "shared-errors": "wisecrowd.audit.shared_errors:find_shared_errors",
        "scale": "wisecrowd.audit.number_scale:check_scale",
        "evidence": "wisecrowd.audit.number_evidence:measure_evidence",
    },
    shared={"view": "wisecrowd.audit.number_view:number_view"},
    prunable=("spammers",),
)
PAIRS = AuditPlan(
    parts={
        "voters": "wisecrowd.audit.pair_voters:find_bad_voters",
        "sides": "wisecrowd.audit.pair_sides:find_side_bias",
        "ties": "wisecrowd.audit.pair_ties:find_tie_habits",
        "contradictions": "wisecrowd.audit.contradictions:find_contradictions",
        "cycles": "wisecrowd.audit.cycles:find_cycles",
        "connectivity": "wisecrowd.audit.pair_connectivity:check_connectivity",
    },
    shared={"view": "wisecrowd.audit.pair_view:pair_view"},
    prunable=("spammers",),
)
SEQUENCES = AuditPlan(
    parts={
        "spammers": "wisecrowd.audit.sequence_spammers:find_sequence_spammers",
        "habits": "wisecrowd.audit.sequence_habits:find_span_habits",
        "clones": "wisecrowd.audit.sequence_copies:find_sequence_copies",
        "agreement": "wisecrowd.audit.sequence_agreement:measure_sequence_agreement",
    },
    shared={"view": "wisecrowd.audit.sequence_view:sequence_view"},
    prunable=("spammers",),
)
SETS = AuditPlan(
    parts={
        "spammers": "wisecrowd.audit.set_spammers:find_set_spammers",
        "habits": "wisecrowd.audit.set_habits:find_one_box_workers",
        "agreement": "wisecrowd.audit.set_agreement_report:measure_set_agreement",
    },
    shared={"view": "wisecrowd.audit.set_view:set_view"},
    prunable=("spammers",),
)
BOXES = AuditPlan(
    parts={
        "drawers": "wisecrowd.audit.box_drawers:find_bad_drawers",
        "sides": "wisecrowd.audit.box_sides:find_side_bias_of_boxes",
        "copies": "wisecrowd.audit.box_copies:find_copied_boxes",
        "evidence": "wisecrowd.audit.box_evidence:measure_box_evidence",
    },
    shared={"view": "wisecrowd.audit.box_view:box_view"},
)

SAME = AuditPlan(
    parts={"transitivity": "wisecrowd.audit.transitivity:find_intransitive_votes"},
    shared={"view": "wisecrowd.audit.transitivity:same_view"},
)
TEXTS = AuditPlan(
    parts={
        "errors": "wisecrowd.audit.text_errors:find_text_errors",
        "copies": "wisecrowd.audit.text_copies:find_copied_texts",
        "agreement": "wisecrowd.audit.text_agreement:measure_text_agreement",
    },
    shared={"view": "wisecrowd.audit.text_view:text_view"},
)
MASKS = AuditPlan(
    parts={
        "extent": "wisecrowd.audit.mask_extent:find_extents",
        "agreement": "wisecrowd.audit.mask_agreement:measure_mask_agreement",
    },
    shared={"view": "wisecrowd.audit.mask_view:mask_view"},
)


def plan_of(data: Annotations) -> AuditPlan:
    """Return the plan of an audit of these data.

    Examples
    --------
    >>> from wisecrowd import CrowdNumbers
    >>> "bias" in plan_of(CrowdNumbers.from_arrays(["t"], ["w"], [1.5])).parts
    True
    """
    kind = kind_of(data)
    if not kind.audit:
        known = [name for name, one in all_kinds().items() if one.audit]
        raise ParameterError(
            f"There is no audit for {kind.name}; audits are for {', '.join(known)}."
        )
    plan: AuditPlan = load(kind.audit)
    return plan


def load(location: str) -> Any:
    """Return what a location "module:name" names."""
    module, _, name = location.partition(":")
    return getattr(importlib.import_module(module), name)
