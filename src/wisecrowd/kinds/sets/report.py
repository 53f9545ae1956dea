"""Content of a report on sets: verdict, workers, classes and tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats
from wisecrowd.kinds.sets.methods.base import Ticks
from wisecrowd.kinds.sets.set_text import joined_sets
from wisecrowd.reporting.answer_study import AnswerStudy, answer_report
from wisecrowd.reporting.display import shown
from wisecrowd.reporting.kind_charts import rates_of_workers
from wisecrowd.reporting.sections import nothing, of_workers, task_data
from wisecrowd.reporting.tasks import votes_by_worker
from wisecrowd.reporting.verdict import spend, wilson
from wisecrowd.reporting.workers import number, worker_rows

MOST_TASKS = 100
MOST_LABELS = 8  # sets of a task that are shown


def verdict(study: AnswerStudy) -> dict[str, Any]:
    """Return sizes, expected errors, agreement and cost as plain data."""
    data, fit = study.labels, study.fit
    labelled = data.labels_per_task > 0
    chosen, p = fit.members_[labelled], fit.probas_[labelled]
    agreement: Any = study.audit.parts.get("agreement")
    return {
        "n_tasks": data.n_tasks,
        "n_workers": data.n_workers,
        "n_classes": data.n_classes,
        "n_labels": data.n_annotations,
        "n_unlabelled": int((~labelled).sum()),
        "method": study.method,
        "set_size": number(chosen.sum(axis=1).mean()) if labelled.any() else None,
        "given_size": number(data.sizes.mean()),
        "n_empty": int((chosen.sum(axis=1) == 0).sum()),
        "wrong": number(np.where(chosen, 1 - p, p).mean()) if labelled.any() else None,
        "alpha": None if agreement is None else number(agreement.alpha, 3),
        "measured": None if study.measured is None else {
            "from": study.known_from,
            "scores": {name: number(value) for name, value in study.measured.items()},
        },
        "spend": spend(data),
    }  # fmt: skip


def workers(study: AnswerStudy) -> dict[str, Any]:
    """Return the workers with sensitivity, false alarms and set sizes."""
    fit, view = study.fit, study.view
    seen = Ticks(study.labels).counts(fit.probas_).seen.sum(axis=2)
    ends = [
        np.array([wilson(share, n) for share, n in zip(rate, total, strict=True)]).T
        for rate, total in zip((fit.worker_sensitivity_, fit.worker_false_alarm_),
                               np.maximum(seen, 1.0), strict=True)
    ]  # fmt: skip
    found = worker_rows(study, {
        "sensitivity": fit.worker_sensitivity_,
        "sensitivity_low": ends[0][0], "sensitivity_high": ends[0][1],
        "false_alarms": fit.worker_false_alarm_,
        "false_alarms_low": ends[1][0], "false_alarms_high": ends[1][1],
        "set_size": fit.set_size_, "crowd_set_size": fit.crowd_set_size_,
        "correlation": np.where(view.information > 0, view.correlation, np.nan),
    }, fit.worker_false_alarm_ - fit.worker_sensitivity_)  # fmt: skip
    skipped = study.audit.skipped.get("spammers", "")
    return found | {"reason": shown(skipped)}


def classes(study: AnswerStudy) -> dict[str, Any]:
    """Return the classes with their shares, rates of the crowd, and agreement."""
    data, fit = study.labels, study.fit
    agreement: Any = study.audit.parts.get("agreement")
    labelled = data.labels_per_task > 0
    columns: dict[str, Floats] = {
        "ticked": np.bincount(data.members, minlength=data.n_classes) / data.n_annotations,
        "share": fit.members_[labelled].mean(axis=0),
    }
    for name in ("sensitivity", "false_alarm"):
        if hasattr(fit, f"pooled_{name}_"):
            columns[name] = getattr(fit, f"pooled_{name}_")
    if agreement is not None:
        columns |= {"alpha": agreement.class_alpha, "low": agreement.low, "high": agreement.high}
    order = np.argsort(-columns["ticked"], kind="stable")
    return {
        "columns": list(columns),
        "rows": [
            {"class": shown(data.classes[k]), **{
                name: number(values[k]) for name, values in columns.items()
            }}
            for k in order.tolist()
        ],
    }  # fmt: skip


def tasks(study: AnswerStudy) -> dict[str, Any]:
    """Return the tasks whose workers disagree most, by the variance of their ticks."""
    data = study.labels
    share = data.votes / np.maximum(data.total_weight, 1e-300)[:, None]
    apart = (share * (1 - share)).sum(axis=1)
    several = data.labels_per_task > 1
    order = np.flatnonzero(several)
    order = order[np.argsort(-apart[order].round(9), kind="stable")]
    texts = joined_sets(data.members, data.pointer, data.classes)
    return {
        "total": int(several.sum()),
        "n_shown": min(len(order), MOST_TASKS),
        "rows": [_task_row(study, i, float(apart[i]), texts) for i in order[:MOST_TASKS].tolist()],
    }


def _task_row(study: AnswerStudy, i: int, apart: float, texts: NDArray[Any]) -> dict[str, Any]:
    data, fit = study.labels, study.fit
    given = [shown(text) for text in texts[data.indptr[i] : data.indptr[i + 1]].tolist()]
    own = np.where(fit.members_[i], fit.probas_[i], 1 - fit.probas_[i])
    return {
        "task": shown(data.tasks[i : i + 1].tolist()[0]),
        "labels": shown(fit.labels_[i]),
        "least": number(own.min()) if len(own) else None,
        "apart": number(apart),
        "n_labels": len(given),
        "given": given[:MOST_LABELS],
        "n_more": max(0, len(given) - MOST_LABELS),
        **votes_by_worker(data, i, given),
    }


# Finding → its remedy, as arguments of `wisecrowd`; {file} is the file of annotations. The options
# for reading, such as --type, are added.
COMMANDS = {
    "spammers": "audit {file} --prune-to cleaned.csv --unlabelled drop",
    "adversaries": "audit {file} --prune-to cleaned.csv --unlabelled drop",
    "constant-answers": "audit {file} --part spammers -o audit",
    "kept-spammers": "aggregate {file} -m shared-two-coin -o sets.csv",
    "no-signal": "inspect {first}",
    "one-box-workers": "audit {file} --part habits -o audit",
    "agreement-at-chance": "audit {file} --part agreement -o audit",
    "unclear-classes": "audit {file} --part agreement -o audit",
    "one-label-per-task": "aggregate {file} -m shared-two-coin -o sets.csv",
}
CALLS = {
    "spammers": 'wc.audit.clean(labels, ["spammers"]).labels',
    "adversaries": 'wc.audit.clean(labels, ["spammers"]).labels',
    "one-box-workers": "wc.audit.find_one_box_workers(labels).tables()",
    "unclear-classes": "wc.audit.measure_set_agreement(labels).tables()",
    "": 'wc.aggregate(labels, "shared-two-coin")',
}
PLAN = answer_report(
    template="set_verdict",
    content={
        "verdict": verdict,
        "workers": workers,
        "classes": classes,
        "tasks": tasks,
    },
    sections={
        "workers": (
            "Workers: sensitivity and false alarms",
            of_workers(rates_of_workers),
            "set_workers",
        ),
        "classes": ("Classes", nothing, "set_classes"),
        "tasks": ("Tasks people disagree about", task_data, "set_tasks"),
    },
    commands=COMMANDS,
    calls=CALLS,
    worker_findings=("spammers", "adversaries", "constant-answers", "one-box-workers"),
    methods=("set-vote", "shared-two-coin", "label-set-mixture"),
)
