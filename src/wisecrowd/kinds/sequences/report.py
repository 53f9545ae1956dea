"""Content of a report on sequences: verdict, boundaries and types, workers, tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wisecrowd.core.types import Longs
from wisecrowd.kinds.sequences.answers import fitted_spans
from wisecrowd.kinds.sequences.audit.workers import DID, HABITS, OF
from wisecrowd.kinds.sequences.container import WORDS
from wisecrowd.kinds.sequences.tag_scheme import Spans
from wisecrowd.reporting.answer_study import AnswerStudy, answer_report
from wisecrowd.reporting.display import shorten, shown
from wisecrowd.reporting.kind_charts import agreement_on_spans
from wisecrowd.reporting.sections import nothing, of_workers, task_data
from wisecrowd.reporting.tasks import votes_by_worker
from wisecrowd.reporting.verdict import spend
from wisecrowd.reporting.workers import number, worker_rows

CERTAIN = 0.8  # no span of the answers has 0.9
CONTEXT = (
    "Mean confidence is what the labels say about themselves, not an estimate of accuracy. In a "
    "published crowd that marked named entities it was 75%, and 81% of the spans were right; by "
    "the four busiest workers alone, 73% and 74%."
)
MOST_TASKS = 100
MOST_SPANS = 8  # different spans of a task that are shown
MOST_TYPES = 12  # types in the table of confusions
LONGEST = 80  # characters of the text of a span


def verdict(study: AnswerStudy) -> dict[str, Any]:
    """Return sizes, confidence, agreement and cost as plain data."""
    data, fit = study.labels, study.fit
    agreement: Any = study.audit.parts.get("agreement")
    confidence = fit.span_confidence_
    return {
        "n_tasks": data.n_tasks,
        "n_tokens": int(data.length.sum()),
        "n_workers": data.n_workers,
        "n_labels": data.n_annotations,
        "n_unlabelled": int((data.labels_per_task == 0).sum()),
        "n_spans": len(confidence),
        "n_types": len(data.tag_scheme.types),
        "method": study.method,
        "confidence": number(confidence.mean()) if len(confidence) else None,
        "certain": float(np.mean(confidence >= CERTAIN)) if len(confidence) else None,
        **({"context": CONTEXT} if len(confidence) else {}),
        "agreement": None if agreement is None else {
            "f1": [number(one) for one in agreement.span_f1],
            "same_limits": number(agreement.same_limits_f1[0]),
            "relaxed": number(agreement.relaxed_f1[0]),
            "alpha": [number(one) for one in agreement.alpha],
        },
        "measured": None if study.measured is None else {
            "from": study.known_from,
            "scores": {name: number(value) for name, value in study.measured.items()},
        },
        "spend": spend(data),
    }  # fmt: skip


def boundaries_and_types(study: AnswerStudy) -> dict[str, Any]:
    """Return typical rates of errors, and how often a type is taken for another."""
    habits: Any = study.audit.parts.get("habits")
    agreement: Any = study.audit.parts.get("agreement")
    if habits is None:
        reason = shown(study.audit.skipped.get("habits", ""))
        return {"reason": reason, "rows": [], "types": [], "n_more": 0}
    confusion = habits.confusion.sum(axis=0)
    total = confusion.sum(axis=1)
    order = np.argsort(-total, kind="stable")
    order = order[total[order] > 0]
    chosen = order[:MOST_TYPES]
    f1 = {} if agreement is None else dict(
        zip(agreement.types.tolist(), agreement.type_f1.tolist(), strict=True))  # fmt: skip
    return {
        "reason": None,
        "rows": [
            {
                "habit": name.replace("_", " "),
                "meaning": DID[name][1],
                "of": OF.get(name, "spans"),
                "typical": number(habits.typical[h], 4),
                "highest": number(np.nanmax(habits.rate[:, h], initial=0.0), 4),
                "n_workers": int(habits.habit[:, h].sum()),
            }
            for h, name in enumerate(HABITS)
        ],
        "types": [
            {
                "type": shown(habits.types[a]),
                "n_spans": int(total[a]),
                "f1": number(f1.get(habits.types[a], np.nan), 4),
                "given": [number(confusion[a, b] / total[a], 4) for b in chosen.tolist()],
            }
            for a in chosen.tolist()
        ],
        "n_more": len(order) - len(chosen),
    }


def workers(study: AnswerStudy) -> dict[str, Any]:
    """Return the workers with agreement, precision, recall and rates of errors."""
    fit = study.fit
    columns: dict[str, Any] = {
        "precision": fit.span_precision_, "recall": fit.span_recall_,
    }  # fmt: skip
    spammers: Any = study.audit.parts.get("spammers")
    habits: Any = study.audit.parts.get("habits")
    if spammers is not None:
        columns |= {
            "agreement": spammers.agreement, "low": spammers.low, "high": spammers.high,
        }  # fmt: skip
    if habits is not None:
        columns |= {name: habits.rate[:, h] for h, name in enumerate(HABITS)}
    return worker_rows(study, columns, -columns.get("agreement", fit.span_recall_)) | {
        "columns": list(columns),
        "habits": [name for name in HABITS if name in columns],
        "reason": shown(study.audit.skipped.get("spammers", "")),
    }


def tasks(study: AnswerStudy) -> dict[str, Any]:
    """Return the tasks whose workers agree least, with the spans that they mark."""
    data, fit = study.labels, study.fit
    given = data.tag_scheme.spans(data.tags, data.pointer)
    task = data.task[given.sequence].astype(np.int64)
    variant = _variants(data, given, task)
    _, first, inverse, count = np.unique(
        variant, return_index=True, return_inverse=True, return_counts=True
    )
    others = (data.labels_per_task - 1)[task]
    agreeing = np.bincount(task, count[inverse.ravel()] - 1, data.n_tasks)
    possible = np.bincount(task, others, data.n_tasks)
    f1 = agreeing / np.maximum(possible, 1)
    disputed = np.flatnonzero((data.labels_per_task > 1) & (possible > 0) & (f1 < 1))
    disputed = disputed[np.lexsort((disputed, -possible[disputed], f1[disputed].round(9)))]
    answers, _ = fitted_spans(vars(fit))
    confidence = dict(zip(_variants(data, answers, answers.sequence).tolist(),
                          fit.span_confidence_.tolist(), strict=True))  # fmt: skip
    spans = Spans(*(column[first] for column in given))
    spans = spans._replace(sequence=task[first])
    by_task = np.argsort(spans.sequence, kind="stable")
    pointer = np.searchsorted(spans.sequence[by_task], np.arange(data.n_tasks + 1))
    rows = []
    for i in disputed[:MOST_TASKS].tolist():
        own = by_task[pointer[i] : pointer[i + 1]]
        own = own[np.lexsort((spans.start[own], -count[own]))]
        rows.append({
            "task": shown(data.tasks[i : i + 1].tolist()[0]),
            "n_labels": int(data.labels_per_task[i]),
            "f1": number(f1[i], 3),
            **votes_by_worker(data, i, _said(data, given, i)),
            "n_more": max(0, len(own) - MOST_SPANS),
            "spans": [
                _span(data, i, spans, s)
                | {"count": int(count[s]), "confidence": _sure(confidence, variant[first[s]])}
                for s in own[:MOST_SPANS].tolist()
            ],
        })  # fmt: skip
    return {
        "total": len(disputed),
        "n_shown": len(rows),
        "n_several": int((data.labels_per_task > 1).sum()),
        "rows": rows,
    }


def _said(data: Any, given: Spans, i: int) -> list[str]:
    """Return the spans of each worker of a task, as text."""
    found = []
    for row in range(int(data.indptr[i]), int(data.indptr[i + 1])):
        first, last = np.searchsorted(given.sequence, (row, row + 1)).tolist()
        spans = [_span(data, i, given, s) for s in range(first, last)]
        found.append("; ".join(f"{s['text'] or ''} {s['start']}–{s['end']} {s['type']}".strip()
                               for s in spans))  # fmt: skip
    return found


def _variants(data: Any, spans: Spans, task: Longs) -> Longs:
    """Return a number for each task, limits and type."""
    width = int(data.length.max(initial=1)) + 1
    place = (task * width + spans.start) * width + spans.end
    return np.asarray(place * max(len(data.tag_scheme.types), 1) + spans.kind)


def _sure(confidence: Mapping[int, float], variant: Any) -> float | None:
    """Return the confidence of a span; None if it is not in the answers."""
    found = confidence.get(int(variant))
    return None if found is None else number(found, 3)


def _span(data: Any, i: int, spans: Spans, s: int) -> dict[str, Any]:
    start, end = int(spans.start[s]), int(spans.end[s])
    base = int(data.token_pointer[i]) + i  # every task has one limit more than tokens
    text = None
    if WORDS in data.task_columns:
        between = data.attributes()["joined_by_"]
        text = between.join(map(str, data.task_columns[WORDS][i][start:end]))
    return {
        "start": int(data.offset[base + start]), "end": int(data.offset[base + end]),
        "type": shown(data.tag_scheme.types[int(spans.kind[s])]),
        "text": shorten(shown(text), LONGEST) if text else None,
    }  # fmt: skip


# Finding → its remedy, as arguments of `wisecrowd`; {file} is the file of annotations. The options
# for reading, such as --type, are added.
COMMANDS = {
    "marks-nothing": "audit {file} --prune-to cleaned.csv --unlabelled drop",
    "marks-everything": "audit {file} --prune-to cleaned.csv --unlabelled drop",
    "random-spans": "audit {file} --prune-to cleaned.csv --unlabelled drop",
    "no-signal": "inspect {first}",
    "clones": "audit {file} --part clones -o audit",
    "agreement": "audit {file} --part agreement -o audit",
    "agreement-at-chance": "audit {file} --part agreement --part spammers -o audit",
    "one-label-per-task": "aggregate {file} -m bsc -o spans.csv",
    **dict.fromkeys(
        ("long-spans", "short-spans", "split-spans", "type-confusion", "missed-spans",
         "phantom-spans"), "audit {file} --part habits -o audit",
    ),
}  # fmt: skip
CALLS = {
    "marks-nothing": 'wc.audit.clean(labels, ["spammers"]).labels',
    "marks-everything": 'wc.audit.clean(labels, ["spammers"]).labels',
    "random-spans": 'wc.audit.clean(labels, ["spammers"]).labels',
    "clones": 'wc.audit.audit_crowd(labels, parts=["clones"]).tables()',
    "": 'wc.audit.audit_crowd(labels, parts=["habits"]).tables()',
}
PLAN = answer_report(
    template="span_verdict",
    content={
        "verdict": verdict,
        "boundaries": boundaries_and_types,
        "workers": workers,
        "tasks": tasks,
    },
    sections={
        "boundaries": ("Boundaries and types", nothing),
        "workers": ("Workers", of_workers(agreement_on_spans), "span_workers"),
        "tasks": ("Tasks people disagree about", task_data, "span_tasks"),
    },
    commands=COMMANDS,
    calls=CALLS,
    worker_findings=(
        "marks-nothing",
        "marks-everything",
        "random-spans",
        "clones",
        "long-spans",
        "short-spans",
        "split-spans",
        "type-confusion",
        "missed-spans",
        "phantom-spans",
    ),
    methods=("token-wise", "hmm-crowd", "bsc"),
)
