"""Fairness: metrics by group of tasks, decisions with bounded gaps, and plans of who is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wisecrowd.core.lazy import facade

if TYPE_CHECKING:
    from wisecrowd.core.attributes import Groups as Groups
    from wisecrowd.core.attributes import as_groups as as_groups
    from wisecrowd.core.attributes import task_groups as task_groups
    from wisecrowd.core.attributes import with_task_attributes as with_task_attributes
    from wisecrowd.core.attributes import with_worker_attributes as with_worker_attributes
    from wisecrowd.fairness.decisions import FairDecision as FairDecision
    from wisecrowd.fairness.decisions import decide as decide
    from wisecrowd.fairness.decisions import frontier as frontier
    from wisecrowd.fairness.decisions import vote_scores as vote_scores
    from wisecrowd.fairness.work_shares import fair_shares as fair_shares
    from wisecrowd.metrics.fairness import GroupMetrics as GroupMetrics
    from wisecrowd.metrics.fairness import by_group as by_group
    from wisecrowd.metrics.fairness import calibration_by_group as calibration_by_group
    from wisecrowd.metrics.fairness import (
        demographic_parity_difference as demographic_parity_difference,
    )
    from wisecrowd.metrics.fairness import (
        equal_opportunity_difference as equal_opportunity_difference,
    )
    from wisecrowd.metrics.fairness import equalized_odds_difference as equalized_odds_difference
    from wisecrowd.metrics.fairness import (
        false_positive_rate_difference as false_positive_rate_difference,
    )

__getattr__, __dir__ = facade(__name__)
