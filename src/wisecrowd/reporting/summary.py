"""Summary: the complete content of a report, as plain data with a version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wisecrowd.core.plain_values import plain
from wisecrowd.reporting.budget import budget
from wisecrowd.reporting.health import health, reproduction
from wisecrowd.reporting.method_comparison import calibration, methods_compared
from wisecrowd.reporting.network import network
from wisecrowd.reporting.study import Study, study_crowd
from wisecrowd.reporting.tasks import confused_classes, tasks
from wisecrowd.reporting.verdict import next_steps, verdict
from wisecrowd.reporting.workers import workers
from wisecrowd.storage.manifest import Manifest

SCHEMA = "wisecrowd-report"
VERSION = 1  # increased when a name or a meaning changes, but not for new names

Summary = dict[str, Any]


def summarize(labels: Any, **options: Any) -> Summary:
    """Return the content of a report on these labels, ready for JSON.

    Parameters
    ----------
    labels : CrowdLabels or data of any accepted form
    **options
        Options of :func:`wisecrowd.reporting.study.study_crowd`: ``method``, ``fit``, ``gold``,
        ``truth``, ``random_state``.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(60, 6 * simulate.OneCoinWorkers(8, 2), n_classes=3)
    >>> summary = summarize(crowd.labels)
    >>> summary["schema"], summary["version"], summary["verdict"]["n_labels"]
    ('wisecrowd-report', 1, 300)
    """
    return summary_of(study_crowd(labels, **options))


def summary_of(
    study: Study,
    *,
    files: Sequence[str] = (),
    reading: Sequence[str] = (),
    manifest: Manifest | None = None,
    title: str | None = None,
) -> Summary:
    """Return the summary of a study; see :func:`wisecrowd.reporting.report` for the options."""
    found = {
        "schema": SCHEMA,
        "version": VERSION,
        "title": title or (f"Crowd report: {', '.join(files)}" if files else "Crowd report"),
        "verdict": verdict(study),
        "next": next_steps(study, files, reading),
        "workers": workers(study),
        "tasks": tasks(study),
        "classes": confused_classes(study),
        "network": network(study),
        "methods": methods_compared(study),
        "calibration": calibration(study),
        "budget": budget(study),
        "health": health(study),
        "reproduce": reproduction(study, manifest, files, study.seed),
    }
    made: Summary = plain(found)
    return made
