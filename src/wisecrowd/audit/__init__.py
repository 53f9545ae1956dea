"""Audit of a crowd: spammers, colluders, agreement and identifiability."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wisecrowd.core.lazy import facade

if TYPE_CHECKING:
    from wisecrowd.audit.crowd_audit import Audit as Audit
    from wisecrowd.audit.crowd_audit import Findings as Findings
    from wisecrowd.audit.crowd_audit import audit_crowd as audit_crowd
    from wisecrowd.audit.group_gaps import find_group_gaps as find_group_gaps
    from wisecrowd.core.findings import Finding as Finding
    from wisecrowd.core.part import Part as Part
    from wisecrowd.kinds.classes.audit.agreement_report import (
        measure_agreement as measure_agreement,
    )
    from wisecrowd.kinds.classes.audit.attacked_tasks import (
        find_attacked_tasks as find_attacked_tasks,
    )
    from wisecrowd.kinds.classes.audit.clones import collapse_clones as collapse_clones
    from wisecrowd.kinds.classes.audit.clones import find_clones as find_clones
    from wisecrowd.kinds.classes.audit.clones import find_dependent_groups as find_dependent_groups
    from wisecrowd.kinds.classes.audit.collusion import find_collusion as find_collusion
    from wisecrowd.kinds.classes.audit.confidence import measure_confidence as measure_confidence
    from wisecrowd.kinds.classes.audit.drift import drop_after as drop_after
    from wisecrowd.kinds.classes.audit.drift import find_drift as find_drift
    from wisecrowd.kinds.classes.audit.fit import check_fit as check_fit
    from wisecrowd.kinds.classes.audit.fit import find_temperature as find_temperature
    from wisecrowd.kinds.classes.audit.identifiability import (
        identifiability_report as identifiability_report,
    )
    from wisecrowd.kinds.classes.audit.label_distribution import (
        find_label_outliers as find_label_outliers,
    )
    from wisecrowd.kinds.classes.audit.label_distribution import (
        find_rare_classes as find_rare_classes,
    )
    from wisecrowd.kinds.classes.audit.pruning import clean as clean
    from wisecrowd.kinds.classes.audit.pruning import prune as prune
    from wisecrowd.kinds.classes.audit.response_times import find_fast_workers as find_fast_workers
    from wisecrowd.kinds.classes.audit.spammers import find_spammers as find_spammers
    from wisecrowd.kinds.classes.audit.workers_by_gold import judge_workers as judge_workers
    from wisecrowd.kinds.numbers.audit.shared_errors import find_shared_errors as find_shared_errors
    from wisecrowd.kinds.numbers.audit.workers import find_biased_workers as find_biased_workers
    from wisecrowd.kinds.numbers.audit.workers import find_number_spammers as find_number_spammers
    from wisecrowd.kinds.ordered.audit import find_biased_graders as find_biased_graders
    from wisecrowd.kinds.ordered.audit import find_extreme_graders as find_extreme_graders
    from wisecrowd.kinds.pairs.audit.consistency import check_connectivity as check_connectivity
    from wisecrowd.kinds.pairs.audit.consistency import (
        find_contradictions as find_contradictions,
    )
    from wisecrowd.kinds.pairs.audit.consistency import find_cycles as find_cycles
    from wisecrowd.kinds.pairs.audit.voters import find_bad_voters as find_bad_voters
    from wisecrowd.kinds.pairs.audit.voters import find_side_bias as find_side_bias
    from wisecrowd.kinds.pairs.audit.voters import find_tie_habits as find_tie_habits
    from wisecrowd.kinds.sequences.audit.agreement import (
        find_sequence_copies as find_sequence_copies,
    )
    from wisecrowd.kinds.sequences.audit.agreement import (
        measure_sequence_agreement as measure_sequence_agreement,
    )
    from wisecrowd.kinds.sequences.audit.workers import (
        find_sequence_spammers as find_sequence_spammers,
    )
    from wisecrowd.kinds.sequences.audit.workers import find_span_habits as find_span_habits
    from wisecrowd.kinds.sets.audit import find_one_box_workers as find_one_box_workers
    from wisecrowd.kinds.sets.audit import find_set_spammers as find_set_spammers
    from wisecrowd.kinds.sets.audit import measure_set_agreement as measure_set_agreement

__getattr__, __dir__ = facade(__name__)
