"""HTML of labels, fits and findings for notebooks: small tables, everything escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from wisecrowd.reporting.display import SENTENCE, SHORT, TITLE, shorten, shown

N_ROWS = 8


def labels_html(labels: Any) -> str:
    """Return HTML with the size of a crowd and its first labels.

    Examples
    --------
    >>> from wisecrowd import CrowdLabels
    >>> "<bdi>&lt;b&gt;</bdi>" in labels_html(CrowdLabels.from_arrays(["<b>"], ["ann"], [1]))
    True
    """
    end = min(N_ROWS, labels.n_annotations)
    columns = [
        labels.tasks[labels.task[:end]].tolist(),
        labels.workers[labels.worker[:end]].tolist(),
        labels.classes[labels.label[:end]].tolist(),
    ]
    table = _table(("task", "worker", "label"), zip(*columns, strict=True))
    more = labels.n_annotations - end
    rest = f"<p>and {more:,} more labels</p>" if more else ""
    return f"<div>{_heading(repr(labels))}{table}{rest}</div>"


def fit_html(model: Any) -> str:
    """Return HTML of a method and, after a fit, its least certain tasks and busiest workers."""
    heading = _heading(repr(model))
    if not model.__sklearn_is_fitted__():
        return f"<div>{heading}<p>not fitted</p></div>"
    state = f"{model.n_iter_} iterations, {'' if model.converged_ else 'not '}converged"
    unsure = np.argsort(model.confidence_, kind="stable")[:N_ROWS]
    busy = np.argsort(-model.labels_per_worker_, kind="stable")[:N_ROWS]
    tasks = zip(
        model.tasks_[unsure].tolist(), model.labels_[unsure].tolist(),
        (f"{100 * p:.0f} %" for p in model.confidence_[unsure].tolist()),
        strict=True,
    )  # fmt: skip
    workers = zip(
        model.workers_[busy].tolist(), model.labels_per_worker_[busy].tolist(),
        (f"{100 * share:.0f} %" for share in np.asarray(model.worker_accuracy_)[busy].tolist()),
        strict=True,
    )  # fmt: skip
    return (
        f"<div>{heading}<p>{len(model.tasks_):,} tasks, {len(model.workers_):,} workers, "
        f"{len(model.classes_):,} classes; {state}</p>"
        f"{_table(('least certain task', 'label', 'confidence'), tasks)}"
        f"{_table(('busiest worker', 'labels', 'agreement with the result'), workers)}</div>"
    )


def findings_html(findings: Sequence[Any]) -> str:
    """Return an HTML table of findings, most severe first."""
    if not len(findings):
        return "<p>nothing found</p>"
    rows = (
        (found.severity, found.id, found.explanation, found.remedy, f"{found.score:.3g}")
        for found in findings
    )
    header = ("severity", "finding", "explanation", "remedy", "score")
    return _table(header, rows, SENTENCE)


def audit_html(audit: Any) -> str:
    """Return HTML of an audit: the crowd, its findings, and the parts that were skipped."""
    skipped = _table(("skipped part", "why"), audit.skipped.items(), SENTENCE)
    rest = f"<details><summary>{len(audit.skipped)} parts were skipped</summary>{skipped}</details>"
    return (
        f"<div>{_heading(repr(audit.labels))}{findings_html(audit.findings)}"
        f"{rest if audit.skipped else ''}</div>"
    )


def _heading(text: str) -> str:
    return f"<p><strong>{escape(shorten(shown(text), TITLE))}</strong></p>"


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]], limit: int = SHORT) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join(
        f"<tr>{''.join(f'<td>{_cell(value, limit)}</td>' for value in row)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any, limit: int) -> str:
    text = shown(value)
    title = f' title="{escape(shorten(text, TITLE))}"' if len(text) > limit else ""
    return f"<bdi{title}>{escape(shorten(text, limit))}</bdi>"
