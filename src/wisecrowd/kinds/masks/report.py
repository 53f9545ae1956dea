"""Content of a report on masks: verdict, workers and images."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.reporting.answer_study import AnswerStudy, answer_report
from wisecrowd.reporting.display import shown
from wisecrowd.reporting.kind_charts import extent_of_workers
from wisecrowd.reporting.sections import of_workers, task_data
from wisecrowd.reporting.tasks import votes_by_worker
from wisecrowd.reporting.verdict import spend
from wisecrowd.reporting.workers import number, worker_rows

MOST_TASKS = 100


def verdict(study: AnswerStudy) -> dict[str, Any]:
    """Return sizes, expected and measured overlap, agreement and cost as plain data."""
    data, fit = study.labels, study.fit
    labelled = data.labels_per_task > 0
    agreement: Any = study.audit.parts.get("agreement")
    return {
        "n_tasks": data.n_tasks,
        "n_workers": data.n_workers,
        "n_labels": data.n_annotations,
        "n_unlabelled": int((~labelled).sum()),
        "n_empty": int((fit.area_[labelled] == 0).sum()),
        "method": study.method,
        "confidence": number(np.mean(fit.confidence_[labelled])) if labelled.any() else None,
        "agreement": None if agreement is None else number(agreement.mean),
        "measured": None if study.measured is None else {
            "from": study.known_from,
            "scores": {name: number(value) for name, value in study.measured.items()},
        },
        "spend": spend(data),
    }  # fmt: skip


def workers(study: AnswerStudy) -> dict[str, Any]:
    """Return the workers with the extent of their masks and their overlap with the others."""
    extent: Any = study.audit.parts.get("extent")
    nothing = np.full(study.labels.n_workers, np.nan)
    names = ("ratio", "low", "high")
    ratio, low, high = (nothing if extent is None else getattr(extent, name) for name in names)
    columns = {
        "ratio": ratio, "low": low, "high": high,
        "iou": study.view.of_workers(study.view.iou)[1],
        "sensitivity": study.fit.sensitivity_, "specificity": study.fit.specificity_,
    }  # fmt: skip
    return worker_rows(study, columns, -columns["iou"])


def tasks(study: AnswerStudy) -> dict[str, Any]:
    """Return the images whose masks overlap least."""
    data, fit = study.labels, study.fit
    iou = study.view.of_tasks(study.view.iou)
    order = np.flatnonzero(np.isfinite(iou))
    order = order[np.argsort(iou[order].round(9), kind="stable")]
    return {
        "total": len(order),
        "n_shown": min(len(order), MOST_TASKS),
        "rows": [
            {
                "task": shown(data.tasks[i : i + 1].tolist()[0]),
                "iou": number(iou[i], 3),
                "area": int(fit.area_[i]),
                "size": f"{int(data.height[i])} × {int(data.width[i])}",
                "confidence": number(fit.confidence_[i], 3),
                "n_labels": int(data.labels_per_task[i]),
                **votes_by_worker(
                    data,
                    i,
                    [f"{area} pixels" for area in data.area[data.indptr[i] : data.indptr[i + 1]]],
                ),
            }
            for i in order[:MOST_TASKS].tolist()
        ],
    }


# Finding → its remedy, as arguments of `wisecrowd`; {file} is the file of annotations. The options
# for reading, such as --type, are added.
COMMANDS = {
    "wide-masks": "aggregate {file} -m mask-em -o consensus.csv",
    "tight-masks": "aggregate {file} -m mask-em -o consensus.csv",
    "masks-apart": "audit {file} --part agreement -o audit",
    "low-overlap": "audit {file} --part agreement -o audit",
}
CALLS = {
    "masks-apart": 'wc.audit.audit_crowd(labels, parts=["agreement"]).tables()',
    "low-overlap": 'wc.audit.audit_crowd(labels, parts=["agreement"]).tables()',
    "": 'wc.aggregate(labels, "mask-em")',
}
PLAN = answer_report(
    template="mask_verdict",
    content={
        "verdict": verdict,
        "workers": workers,
        "tasks": tasks,
    },
    sections={
        "workers": ("Workers: extent and overlap", of_workers(extent_of_workers), "mask_workers"),
        "tasks": ("Images people disagree about", task_data, "mask_images"),
    },
    commands=COMMANDS,
    calls=CALLS,
    worker_findings=("wide-masks", "tight-masks", "masks-apart"),
    methods=("mask-vote", "mask-em"),
)
