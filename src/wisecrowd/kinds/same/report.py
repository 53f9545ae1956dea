"""Content of a report on sameness: verdict, clusters, workers, contradictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.reporting.answer_study import AnswerStudy, answer_report
from wisecrowd.reporting.display import shown
from wisecrowd.reporting.kind_charts import shares_of_right_votes
from wisecrowd.reporting.sections import nothing, of_workers
from wisecrowd.reporting.verdict import spend
from wisecrowd.reporting.workers import number, worker_rows

MOST_CLUSTERS = 30
MOST_NAMED = 12  # items of a cluster that are named
UNSURE = 0.8  # probability below which the cluster of an item is uncertain


def verdict(study: AnswerStudy) -> dict[str, Any]:
    """Return sizes, clusters, uncertain items, rates of errors and cost as plain data."""
    data, fit = study.labels, study.fit
    voted = data.comparisons_per_item > 0
    rates = np.asarray(fit.common_rates_)
    return {
        "n_items": data.n_items,
        "n_tasks": data.n_tasks,
        "n_workers": data.n_workers,
        "n_labels": data.n_annotations,
        "method": study.method,
        "n_clusters": len(np.unique(fit.cluster_[voted])),
        "n_unsure": int((fit.probability_[voted] < UNSURE).sum()),
        "unsure": UNSURE,
        "median_comparisons": float(np.median(data.comparisons_per_item[voted])),
        "same_rate": number(rates[0]),
        "different_rate": number(rates[1]),
        "measured": None if study.measured is None else {
            "from": study.known_from,
            "scores": {name: number(value) for name, value in study.measured.items()},
        },
        "spend": spend(data),
    }  # fmt: skip


def clusters(study: AnswerStudy) -> dict[str, Any]:
    """Return the clusters, largest first, with their surest items, and the numbers considered."""
    data, fit = study.labels, study.fit
    voted = data.comparisons_per_item > 0
    found = np.unique(fit.cluster_[voted]).tolist()
    rows = []
    for k in found[:MOST_CLUSTERS]:
        mine = np.flatnonzero(voted & (fit.cluster_ == k))
        order = mine[np.argsort(-fit.probability_[mine], kind="stable")]
        rows.append({
            "cluster": int(k),
            "n_items": len(mine),
            "mean": number(fit.probability_[mine].mean(), 3),
            "items": [shown(one) for one in data.items[order[:MOST_NAMED]].tolist()],
            "n_more": max(0, len(mine) - MOST_NAMED),
        })  # fmt: skip
    curve = [
        {"n_clusters": int(size), "objective": number(value, 6), "penalised": number(less, 6)}
        for size, value, less in fit.curve_.tolist()
    ]
    return {"total": len(found), "n_shown": len(rows), "rows": rows, "curve": curve}


def workers(study: AnswerStudy) -> dict[str, Any]:
    """Return the workers with their rates of right answers."""
    fit = study.fit
    columns = {
        "agreement_with_result": np.asarray(fit.worker_accuracy_),
        "same_rate": np.asarray(fit.same_rate_),
        "different_rate": np.asarray(fit.different_rate_),
    }  # fmt: skip
    return worker_rows(study, columns, -columns["agreement_with_result"]) | {
        "columns": list(columns)
    }


def contradictions(study: AnswerStudy) -> dict[str, Any]:
    """Return contradictory triples and the agreement on repeated pairs."""
    part: Any = study.audit.parts.get("transitivity")
    skipped = study.audit.skipped
    rows = []
    if part is not None:
        table = part.tables()["transitivity"]
        pairs = zip(table["item"].tolist(), table["contradictions"].tolist(), strict=True)
        rows = [{"item": shown(item), "n": int(count)} for item, count in pairs][:MOST_NAMED]
    names = ("n_triples", "n_testable", "n_contradictions", "n_repeats")
    shares = ("share", "expected", "agreement", "expected_agreement")
    return {
        "triples": None if part is None else {
            **{name: int(getattr(part, name)) for name in names},
            **{name: number(getattr(part, name), 4) for name in shares},
        },
        "rows": rows,
        "reason": shown(skipped.get("transitivity", "")),
    }  # fmt: skip


# Finding → its remedy, as arguments of `wisecrowd`; {file} is the file of annotations. The options
# for reading, such as --type, are added.
COMMANDS = {
    "intransitive-votes": "audit {file} --part transitivity -o audit",
    "pairs-beyond-clusters": "aggregate {file} -p max_clusters=30 -o clusters.csv",
}
CALLS = {
    "intransitive-votes": 'wc.audit.audit_crowd(labels, parts=["transitivity"]).tables()',
    "pairs-beyond-clusters": 'wc.aggregate(labels, "crowd-clustering", max_clusters=30)',
    "": 'wc.aggregate(labels, "crowd-clustering")',
}
PLAN = answer_report(
    template="same_verdict",
    content={
        "verdict": verdict,
        "clusters": clusters,
        "workers": workers,
        "contradictions": contradictions,
    },
    sections={
        "clusters": ("Clusters", nothing),
        "workers": ("Workers", of_workers(shares_of_right_votes), "same_workers"),
        "contradictions": ("Contradictions", nothing, "same_contradictions"),
    },
    commands=COMMANDS,
    calls=CALLS,
    worker_findings=(),
    methods=("signed-spectral", "crowd-clustering"),
)
