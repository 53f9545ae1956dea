"""Content of a report on texts: verdict, workers and tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.reporting.answer_study import AnswerStudy, answer_report
from wisecrowd.reporting.display import shorten, shown
from wisecrowd.reporting.kind_charts import error_rates
from wisecrowd.reporting.sections import of_workers, task_data
from wisecrowd.reporting.tasks import votes_by_worker
from wisecrowd.reporting.verdict import spend
from wisecrowd.reporting.workers import number, worker_rows

MOST_TASKS = 100
MOST_TEXTS = 8  # texts of a task that are shown
LONGEST = 200  # characters of a text that are shown
WIDTH = 1.959963984540054
CONTEXT = (
    "Agreement on the words is what the texts say about themselves, not an estimate of accuracy. "
    "In published crowds it was 91% for recordings of speech, of whose words 89% were right, and "
    "about 70% for translations, of whose words 36 to 50% were those of a reference."
)


def verdict(study: AnswerStudy) -> dict[str, Any]:
    """Return sizes, agreement and cost as plain data."""
    data, fit = study.labels, study.fit
    labelled = data.labels_per_task > 0
    agreement: Any = study.audit.parts.get("agreement")
    return {
        "n_tasks": data.n_tasks,
        "n_workers": data.n_workers,
        "n_labels": data.n_annotations,
        "n_unlabelled": int((~labelled).sum()),
        "method": study.method,
        "mean_agreement": number(np.mean(fit.confidence_[labelled]), 3),
        "context": CONTEXT,
        "n_doubtful": int((fit.confidence_[labelled] < 0.8).sum()),
        "error_rate": number(study.view.typical, 3),
        "difference": None if agreement is None else number(agreement.difference, 3),
        "equal": None if agreement is None else number(agreement.equal, 3),
        "measured": None if study.measured is None else {
            "from": study.known_from,
            "scores": {name: number(value, 4) for name, value in study.measured.items()},
        },
        "spend": spend(data),
    }  # fmt: skip


def workers(study: AnswerStudy) -> dict[str, Any]:
    """Return the workers with their error rates, intervals and weights."""
    view, half = study.view, WIDTH * study.view.rate_error
    columns = {
        "error_rate": view.rate, "low": np.clip(view.rate - half, 0, 1),
        "high": np.clip(view.rate + half, 0, 1), "weight": study.fit.worker_weight_,
    }  # fmt: skip
    return worker_rows(study, columns, view.rate) | {"typical": number(view.typical, 3)}


def tasks(study: AnswerStudy) -> dict[str, Any]:
    """Return the tasks with the least certain texts, and what workers wrote."""
    data, fit = study.labels, study.fit
    several = np.flatnonzero(data.labels_per_task > 1)
    order = several[np.argsort(fit.confidence_[several].round(9), kind="stable")]
    return {
        "total": len(order),
        "n_shown": min(len(order), MOST_TASKS),
        "rows": [_task_row(study, i) for i in order[:MOST_TASKS].tolist()],
    }


def _task_row(study: AnswerStudy, i: int) -> dict[str, Any]:
    data, fit = study.labels, study.fit
    given = data.text[data.indptr[i] : data.indptr[i + 1]].tolist()
    agreement: Any = study.audit.parts.get("agreement")
    return {
        "task": shown(data.tasks[i : i + 1].tolist()[0]),
        "text": shorten(shown(fit.texts_[i]), LONGEST),
        "confidence": number(fit.confidence_[i], 3),
        "difference": None if agreement is None else number(agreement.task_difference[i], 3),
        "n_labels": len(given),
        "texts": [shorten(shown(text), LONGEST) for text in sorted(given)[:MOST_TEXTS]],
        "n_more": max(0, len(given) - MOST_TEXTS),
        **votes_by_worker(data, i, given),
    }


# Finding → its remedy, as arguments of `wisecrowd`; {file} is the file of annotations. The options
# for reading, such as --type, are added.
COMMANDS = {
    "empty-texts": "audit {file} --part errors -o audit",
    "constant-texts": "audit {file} --part errors -o audit",
    "unrelated-texts": "audit {file} --part errors -o audit",
    "copied-texts": "audit {file} --part copies -o audit",
    "no-common-wording": "aggregate {file} -m text-medoid -o texts.csv",
}
CALLS = {
    "copied-texts": 'wc.audit.audit_crowd(labels, parts=["copies"]).tables()',
    "no-common-wording": 'wc.aggregate(labels, "text-medoid")',
    "": 'wc.audit.audit_crowd(labels, parts=["errors"]).tables()',
}
PLAN = answer_report(
    template="text_verdict",
    content={
        "verdict": verdict,
        "workers": workers,
        "tasks": tasks,
    },
    sections={
        "workers": ("Workers", of_workers(error_rates), "text_workers"),
        "tasks": ("Tasks people disagree about", task_data, "text_tasks"),
    },
    commands=COMMANDS,
    calls=CALLS,
    worker_findings=("empty-texts", "constant-texts", "unrelated-texts", "copied-texts"),
    methods=("rover", "text-medoid"),
)
