"""Content of a report on numbers: verdict, workers, tasks and shared errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.reporting import display
from wisecrowd.reporting.answer_study import AnswerStudy, answer_report
from wisecrowd.reporting.display import shown
from wisecrowd.reporting.kind_charts import bias_and_noise
from wisecrowd.reporting.sections import nothing, of_workers, task_data
from wisecrowd.reporting.tasks import votes_by_worker
from wisecrowd.reporting.verdict import spend
from wisecrowd.reporting.workers import number, worker_rows

MOST_TASKS = 100
MOST_LABELS = 8  # labels of a task that are shown
MOST_PAIRS = 25
PSEUDO = 5  # labels at the typical spread, by which a worker's own is shrunk


def verdict(study: AnswerStudy) -> dict[str, Any]:
    """Return sizes, typical uncertainty, reliability and cost as plain data."""
    data, fit = study.labels, study.fit
    labelled = data.labels_per_task > 0
    evidence: Any = study.audit.parts.get("evidence")
    half = ((fit.high_ - fit.low_) / 2)[labelled]
    return {
        "n_tasks": data.n_tasks,
        "n_workers": data.n_workers,
        "n_labels": data.n_annotations,
        "n_unlabelled": int((~labelled).sum()),
        "method": study.method,
        "scale": study.view.scale,
        "half_width": number(np.median(half)) if len(half) else None,
        "spread_of_values": number(np.std(fit.values_[labelled])) if labelled.any() else None,
        "noise": number(study.view.typical_spread),
        "reliability": None if evidence is None else number(evidence.reliability),
        "measured": None if study.measured is None else {
            "from": study.known_from,
            "scores": {name: number(value) for name, value in study.measured.items()},
        },
        "spend": spend(data),
    }  # fmt: skip


def workers(study: AnswerStudy) -> dict[str, Any]:
    """Return the workers with bias and noise, and their intervals."""
    from scipy.special import chdtri

    view, fit = study.view, study.fit
    half = 1.959963984540054 * view.bias_error
    df = np.maximum(view.n - 1, 1)
    noise = view.spread
    correlation: Any = study.audit.parts.get("spammers")
    columns = {
        "bias": view.bias, "bias_low": view.bias - half, "bias_high": view.bias + half,
        "noise": noise,
        "noise_low": noise * np.sqrt(df / chdtri(df, 0.025)),
        "noise_high": noise * np.sqrt(df / np.maximum(chdtri(df, 0.975), 1e-300)),
    }  # fmt: skip
    if correlation is not None:
        columns["correlation"] = correlation.correlation
    weight = getattr(fit, "worker_weight_", None)
    if weight is not None:
        columns["weight"] = np.asarray(weight)
    found = worker_rows(study, columns, noise)
    present = view.n > 1
    return found | {
        "scale": view.scale,
        "median_noise": number(np.median(noise[present])) if present.any() else None,
        "has_weight": weight is not None,
        "has_correlation": correlation is not None,
    }


def tasks(study: AnswerStudy) -> dict[str, Any]:
    """Return the tasks with the largest spread relative to the noise of their workers."""
    data, view, fit = study.labels, study.view, study.fit
    value = np.log(np.maximum(fit.values_, 1e-300)) if view.scale == "log" else fit.values_
    bias = np.where(np.isfinite(view.bias), view.bias, 0.0)
    typical = view.typical_spread
    if not np.isfinite(typical) or typical <= 0:
        typical = float(np.std(view.value)) or 1.0
    spread = np.where(np.isfinite(view.spread), view.spread, typical)
    n = view.n
    noise = np.sqrt((n * spread**2 + PSEUDO * typical**2) / (n + PSEUDO))
    apart = (view.value - bias[data.worker] - value[data.task]) / noise[data.worker]
    total = np.bincount(data.task, apart**2, data.n_tasks)
    several = data.labels_per_task > 1
    ratio = np.sqrt(total / np.maximum(data.labels_per_task - 1, 1))
    order = np.flatnonzero(several)
    order = order[np.argsort(-ratio[order].round(9), kind="stable")]
    return {
        "total": int(several.sum()),
        "n_shown": min(len(order), MOST_TASKS),
        "rows": [_task_row(study, i, float(ratio[i])) for i in order[:MOST_TASKS].tolist()],
    }


def _task_row(study: AnswerStudy, i: int, ratio: float) -> dict[str, Any]:
    data, fit = study.labels, study.fit
    rows = np.arange(data.indptr[i], data.indptr[i + 1])
    said = [display.number(value, 4) for value in data.value[rows].tolist()]
    rows = rows[np.argsort(data.value[rows], kind="stable")]
    given = [number(value) for value in data.value[rows].tolist()]
    return {
        "task": shown(data.tasks[i : i + 1].tolist()[0]),
        "value": number(fit.values_[i]),
        "low": number(fit.low_[i]),
        "high": number(fit.high_[i]),
        "n_labels": len(rows),
        "ratio": round(ratio, 3),
        "labels": given if len(given) <= MOST_LABELS else [*given[:4], *given[-4:]],
        "n_more": max(0, len(given) - MOST_LABELS),
        **votes_by_worker(data, i, said),
    }


def shared_errors(study: AnswerStudy) -> dict[str, Any]:
    """Return the groups of workers with shared errors, and the closest pairs."""
    part: Any = study.audit.parts.get("shared-errors")
    if part is None:
        return {"reason": shown(study.audit.skipped.get("shared-errors", "")), "groups": [],
                "rows": [], "n_pairs": 0}  # fmt: skip
    return {
        "reason": None,
        "groups": [[shown(one) for one in group] for group in part.groups],
        "n_pairs": len(part.n_shared),
        "rows": [
            {
                "first": shown(part.first[k]), "second": shown(part.second[k]),
                "n_shared": int(part.n_shared[k]), "closeness": number(part.closeness[k], 3),
                "q": number(part.q[k], 2), "dependent": bool(part.dependent[k]),
            }
            for k in range(min(len(part.n_shared), MOST_PAIRS))
        ],
    }  # fmt: skip


# Finding → its remedy, as arguments of `wisecrowd`; {file} is the file of annotations. The options
# for reading, such as --type, are added.
COMMANDS = {
    "spammers": "audit {file} --prune-to cleaned.csv --unlabelled drop",
    "kept-spammers": "aggregate {file} -m gaussian-em -o values.csv",
    "reversed-scale": "audit {file} --part spammers -o audit",
    "constant-answers": "audit {file} --part spammers -o audit",
    "no-signal": "inspect {first}",
    "noisy-workers": "aggregate {file} -m student-em -o values.csv",
    "biased-workers": "aggregate {file} -m gaussian-em -o values.csv",
    "slightly-biased-workers": "aggregate {file} -m gaussian-em -o values.csv",
    "shared-errors": "audit {file} --part shared-errors -o audit",
    "log-scale": "aggregate {file} -m gaussian-em -p scale=log -o values.csv",
    "different-scales": "audit {file} --part scale -o audit",
    "one-label-per-task": "aggregate {file} -m gaussian-em -o values.csv",
    "sparse-workers": "aggregate {file} -m median -o values.csv",
}
CALLS = {
    "spammers": 'wc.audit.clean(labels, ["spammers"]).labels',
    "kept-spammers": 'wc.aggregate(labels, "gaussian-em")',
    "noisy-workers": 'wc.aggregate(labels, "student-em")',
    "log-scale": 'wc.aggregate(labels, "gaussian-em", scale="log")',
    "sparse-workers": 'wc.aggregate(labels, "median")',
    "shared-errors": 'wc.audit.audit_crowd(labels, parts=["shared-errors"]).tables()',
    "different-scales": 'wc.audit.audit_crowd(labels, parts=["scale"]).findings',
    "": 'wc.aggregate(labels, "gaussian-em")',
}
PLAN = answer_report(
    template="number_verdict",
    content={
        "verdict": verdict,
        "workers": workers,
        "tasks": tasks,
        "shared": shared_errors,
    },
    sections={
        "workers": ("Workers: bias and noise", of_workers(bias_and_noise), "number_workers"),
        "tasks": ("Tasks people disagree about", task_data, "number_tasks"),
        "shared": ("Shared errors", nothing, "shared_errors"),
    },
    commands=COMMANDS,
    calls=CALLS,
    worker_findings=(
        "spammers",
        "reversed-scale",
        "constant-answers",
        "noisy-workers",
        "biased-workers",
        "shared-errors",
        "different-scales",
    ),
    methods=("mean", "median", "gaussian-em", "student-em"),
)
