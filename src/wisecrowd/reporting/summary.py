"""Summary: the complete content of a report, as plain data with a version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wisecrowd.audit.plans import load
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.kinds import LABELS, kind_of
from wisecrowd.core.plain_values import plain
from wisecrowd.core.validation import as_crowd_labels
from wisecrowd.reporting.advice import next_steps
from wisecrowd.reporting.changes import SCHEMA, VERSION
from wisecrowd.reporting.health import reproduction
from wisecrowd.reporting.plans import report_plan
from wisecrowd.storage.manifest import Manifest

Summary = dict[str, Any]


def summarize(labels: Any, **options: Any) -> Summary:
    """Return the content of a report on these labels, ready for JSON.

    Parameters
    ----------
    labels : CrowdLabels, CrowdNumbers, CrowdPairs, or data of any form accepted for classes
    **options
        Options of :func:`wisecrowd.reporting.study.study_crowd`: ``method``, ``fit``, ``gold``,
        ``truth``, ``options``, ``random_state``.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(60, 6 * simulate.OneCoinWorkers(8, 2), n_classes=3)
    >>> summary = summarize(crowd.labels)
    >>> summary["schema"], summary["version"], summary["verdict"]["n_labels"]
    ('wisecrowd-report', 2, 300)
    """
    return summary_of(study_of(labels, **options))


def study_of(labels: Any, **options: Any) -> Any:
    """Fit and audit data of any kind for a report."""
    data = labels if isinstance(labels, Annotations) else as_crowd_labels(labels)
    return load(report_plan(data).study)(data, **options)


def summary_of(
    study: Any,
    *,
    files: Sequence[str] = (),
    reading: Sequence[str] = (),
    manifest: Manifest | None = None,
    title: str | None = None,
) -> Summary:
    """Return the summary of a study; see :func:`wisecrowd.reporting.report` for the options."""
    found: Summary = {
        "schema": SCHEMA,
        "version": VERSION,
        "title": title or (f"Crowd report: {', '.join(files)}" if files else "Crowd report"),
    }
    plan = report_plan(study.labels)
    for name, function in plan.content.items():
        part = load(function)(study)
        if part is None and name in plan.optional:
            continue
        found[name] = part
        if name == "verdict":
            found["next"] = next_steps(study, files, reading)
    found["reproduce"] = reproduction(study, manifest, files, study.seed)
    kind = kind_of(study.labels).name
    if kind != LABELS:
        found["kind"] = kind
    made: Summary = plain(found)
    return made
