"""Content of a report on boxes: verdict, workers, images and copies."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.kinds.boxes.answers import SIDES
from wisecrowd.reporting.answer_study import AnswerStudy, answer_report
from wisecrowd.reporting.display import shown
from wisecrowd.reporting.kind_charts import detection_of_workers
from wisecrowd.reporting.sections import nothing, of_workers, task_data
from wisecrowd.reporting.tasks import votes_by_worker
from wisecrowd.reporting.verdict import spend
from wisecrowd.reporting.workers import number, worker_rows

MOST_TASKS = 100
MOST_PAIRS = 25


def verdict(study: AnswerStudy) -> dict[str, Any]:
    """Return sizes, objects per image, agreement and cost as plain data."""
    data, fit = study.labels, study.fit
    drawers: Any = study.audit.parts.get("drawers")
    confidence = fit.box_confidence_
    return {
        "n_tasks": data.n_tasks,
        "n_workers": data.n_workers,
        "n_labels": data.n_annotations,
        "n_boxes": data.n_boxes,
        "n_empty": int((np.diff(data.pointer) == 0).sum()),
        "n_objects": int(fit.n_boxes_.sum()),
        "n_phantoms": int(study.view.phantoms.sum()),
        "method": study.method,
        "confidence": number(confidence.mean(), 4) if len(confidence) else None,
        "detection": None if drawers is None else number(drawers.typical, 4),
        "iou": number(np.median(fit.worker_iou_), 4) if data.n_workers else None,
        "measured": None if study.measured is None else {
            "from": study.known_from,
            "scores": {name: number(value) for name, value in study.measured.items()},
        },
        "spend": spend(data),
    }  # fmt: skip


def workers(study: AnswerStudy) -> dict[str, Any]:
    """Return the workers with what they find, miss and invent, and how they frame objects."""
    fit = study.fit
    error = 1.959963984540054 * fit.detection_error_
    judged = fit.n_judged_ > 0
    sides: Any = study.audit.parts.get("sides")
    columns: dict[str, Any] = {
        "detection": np.where(judged, fit.detection_rate_, np.nan),
        "low": np.where(judged, np.clip(fit.detection_rate_ - error, 0, 1), np.nan),
        "high": np.where(judged, np.clip(fit.detection_rate_ + error, 0, 1), np.nan),
        "phantoms": fit.phantoms_per_image_,
        "iou": np.where(judged, fit.worker_iou_, np.nan),
    }
    if sides is not None:
        columns["looseness"] = sides.looseness
        columns |= {name: sides.sides[:, k] for k, name in enumerate(SIDES)}
    return worker_rows(study, columns, -columns["detection"]) | {
        "has_sides": sides is not None,
        "reason": shown(study.audit.skipped.get("drawers", "")),
    }


def images(study: AnswerStudy) -> dict[str, Any]:
    """Return the images with the most boxes about which workers disagree."""
    data, objects = study.labels, study.view.objects
    share = objects.votes / np.maximum(objects.seen, 1e-300)
    several = objects.seen > 1
    doubtful = several & (share < 0.75) & (share > 0.0)
    apart = np.where(several, 4 * share * (1 - share), 0.0)
    total = np.bincount(objects.task, apart, data.n_tasks)
    count = np.bincount(objects.task[doubtful], minlength=data.n_tasks)
    order = np.flatnonzero(total > 0)
    order = order[np.argsort(-total[order].round(9), kind="stable")]
    drawn = np.bincount(objects.task, minlength=data.n_tasks)
    return {
        "total": len(order),
        "n_shown": min(len(order), MOST_TASKS),
        "rows": [
            {
                "task": shown(data.tasks[i : i + 1].tolist()[0]),
                "n_labels": int(data.labels_per_task[i]),
                "n_objects": int(study.fit.n_boxes_[i]),
                "n_groups": int(drawn[i]),
                "n_doubtful": int(count[i]),
                "disagreement": number(total[i], 3),
                **votes_by_worker(
                    data,
                    i,
                    [data.annotation_text(e) for e in range(data.indptr[i], data.indptr[i + 1])],
                ),
            }
            for i in order[:MOST_TASKS].tolist()
        ],
    }


def copies(study: AnswerStudy) -> dict[str, Any]:
    """Return the pairs of workers with equal boxes."""
    part: Any = study.audit.parts.get("copies")
    if part is None:
        return {"reason": shown(study.audit.skipped.get("copies", "")), "rows": [], "n_pairs": 0,
                "usual": None}  # fmt: skip
    order = np.flatnonzero(part.n_equal > 0)[:MOST_PAIRS]
    return {
        "reason": None,
        "n_pairs": len(part.n_shared),
        "usual": number(part.usual, 3),
        "rows": [
            {
                "first": shown(part.first[k]), "second": shown(part.second[k]),
                "n_shared": int(part.n_shared[k]), "n_equal": int(part.n_equal[k]),
                "q": number(part.q[k], 2), "copied": bool(part.copied[k]),
            }
            for k in order.tolist()
        ],
    }  # fmt: skip


# Finding → its remedy, as arguments of `wisecrowd`; {file} is the file of annotations. The options
# for reading, such as --type, are added.
COMMANDS = {
    "draws-nothing": "audit {file} --part drawers -o audit",
    "misses-objects": "aggregate {file} -m box-em -o boxes.csv --workers-to workers.csv",
    "draws-phantoms": "aggregate {file} -m box-em -o boxes.csv --assignments-to assignments.csv",
    "tight-boxes": "aggregate {file} -p corners=gaussian-em -o boxes.csv",
    "loose-boxes": "aggregate {file} -p corners=gaussian-em -o boxes.csv",
    "shifted-boxes": "aggregate {file} -p corners=gaussian-em -o boxes.csv",
    "copied-boxes": "audit {file} --part copies -o audit",
    "equal-boxes": "audit {file} --part copies -o audit",
    "no-empty-annotations": "inspect {first}",
    "one-worker-per-image": "inspect {first}",
}
CALLS = {
    "misses-objects": 'wc.aggregate(labels, "box-em")',
    "draws-phantoms": 'wc.aggregate(labels, "box-em")',
    "tight-boxes": 'wc.aggregate(labels, "box-consensus", corners="gaussian-em")',
    "loose-boxes": 'wc.aggregate(labels, "box-consensus", corners="gaussian-em")',
    "shifted-boxes": 'wc.aggregate(labels, "box-consensus", corners="gaussian-em")',
    "copied-boxes": 'wc.audit.audit_crowd(labels, parts=["copies"]).tables()',
    "": 'wc.aggregate(labels, "box-consensus")',
}
PLAN = answer_report(
    template="box_verdict",
    content={
        "verdict": verdict,
        "workers": workers,
        "tasks": images,
        "copies": copies,
    },
    sections={
        "workers": (
            "Workers: missed and phantom boxes, bias of sides",
            of_workers(detection_of_workers),
            "box_workers",
        ),
        "tasks": ("Images people disagree about", task_data, "box_images"),
        "copies": ("Equal boxes", nothing, "box_copies"),
    },
    commands=COMMANDS,
    calls=CALLS,
    worker_findings=(
        "draws-nothing",
        "misses-objects",
        "draws-phantoms",
        "tight-boxes",
        "loose-boxes",
        "shifted-boxes",
        "copied-boxes",
    ),
    methods=("box-consensus", "box-em"),
)
