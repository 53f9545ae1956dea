"""Plan of the report on classes, whose parts are those of :mod:`wisecrowd.reporting`."""

from __future__ import annotations

from wisecrowd.reporting.budget import budget
from wisecrowd.reporting.group_content import groups_of_tasks, groups_of_workers
from wisecrowd.reporting.health import health
from wisecrowd.reporting.method_comparison import calibration, methods_compared
from wisecrowd.reporting.money import money
from wisecrowd.reporting.network import network
from wisecrowd.reporting.plans import ReportPlan
from wisecrowd.reporting.sections import SECTIONS
from wisecrowd.reporting.study import study_crowd
from wisecrowd.reporting.tasks import confused_classes, tasks
from wisecrowd.reporting.verdict import CALLS, COMMANDS, WORKER_FINDINGS, verdict
from wisecrowd.reporting.workers import workers

PLAN = ReportPlan(
    study=study_crowd,
    content={
        "verdict": verdict,
        "workers": workers,
        "tasks": tasks,
        "classes": confused_classes,
        "groups": groups_of_tasks,
        "worker_groups": groups_of_workers,
        "network": network,
        "methods": methods_compared,
        "calibration": calibration,
        "budget": budget,
        "money": money,
        "health": health,
    },
    sections=SECTIONS,
    commands=COMMANDS,
    calls=CALLS,
    worker_findings=WORKER_FINDINGS,
    methods=("majority-vote", "wawa", "one-coin", "dawid-skene", "glad"),
    optional=("groups", "worker_groups", "money"),
)
