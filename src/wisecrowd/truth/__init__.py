"""Truth with few known answers: what checked tasks say about labels and workers.

A model only knows what the labels say about themselves. If a person answers some tasks that were
drawn at random, these checked tasks measure how often labels are right, with an interval that holds
for any crowd. The model then only makes the interval narrower. Every function takes the labels, the
checked tasks and, optionally, a fit that has not seen them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wisecrowd.core.lazy import facade

if TYPE_CHECKING:
    from wisecrowd.truth.agreements import Agreement as Agreement
    from wisecrowd.truth.agreements import agreement as agreement
    from wisecrowd.truth.anchored_workers import WorkerAccuracies as WorkerAccuracies
    from wisecrowd.truth.anchored_workers import workers as workers
    from wisecrowd.truth.check_lists import CheckList as CheckList
    from wisecrowd.truth.check_lists import check_list as check_list
    from wisecrowd.truth.estimates import Estimate as Estimate
    from wisecrowd.truth.estimates import estimate as estimate
    from wisecrowd.truth.judge_results import JudgeResults as JudgeResults
    from wisecrowd.truth.judging import judges as judges
    from wisecrowd.truth.measured_accuracy import MeasuredAccuracy as MeasuredAccuracy
    from wisecrowd.truth.measured_accuracy import accuracy as accuracy
    from wisecrowd.truth.planning import Plan as Plan
    from wisecrowd.truth.planning import plan as plan
    from wisecrowd.truth.scored_workers import WorkerScores as WorkerScores
    from wisecrowd.truth.scored_workers import score_workers as score_workers

# No function has the name of its module, because the imported module would hide the function.
__getattr__, __dir__ = facade(__name__)
