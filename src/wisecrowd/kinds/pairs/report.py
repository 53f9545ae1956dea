"""Content of a report on pairs: verdict, ranking, workers, sides, contradictions, connectivity."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.reporting.answer_study import AnswerStudy, answer_report
from wisecrowd.reporting.display import shown
from wisecrowd.reporting.kind_charts import reliability_of_voters, scores_by_rank
from wisecrowd.reporting.sections import Summary, nothing, of_workers
from wisecrowd.reporting.verdict import spend
from wisecrowd.reporting.workers import number, worker_rows

MOST_ITEMS = 300  # rows of the ranking
MOST_NAMED = 30  # items of a part that are named
MOST_WORKERS = 30


def verdict(study: AnswerStudy) -> dict[str, Any]:
    """Return sizes, the leader, side bias, ties and cost as plain data."""
    data, fit = study.labels, study.fit
    voters: Any = study.audit.parts.get("voters")
    sides: Any = study.audit.parts.get("sides")
    ties: Any = study.audit.parts.get("ties")
    compared = data.comparisons_per_item > 0
    best = int(np.argmin(np.where(compared, fit.rank_, np.iinfo(np.int64).max)))
    rivals = compared & (fit.rank_low_ <= 1)
    return {
        "n_items": data.n_items,
        "n_tasks": data.n_tasks,
        "n_workers": data.n_workers,
        "n_labels": data.n_annotations,
        "method": study.method,
        "leader": shown(data.items[best : best + 1].tolist()[0]),
        "p_best": number(fit.p_best_[best]),
        "n_rivals": max(int(rivals.sum()), 1),
        "median_comparisons": float(np.median(data.comparisons_per_item[compared])),
        "side": None if sides is None else {
            "bias": number(sides.bias), "low": number(sides.low), "high": number(sides.high),
        },
        "ties": None if ties is None else number(ties.share),
        "reliability": None if voters is None else number(voters.typical),
        "measured": None if study.measured is None else {
            "from": study.known_from,
            "scores": {name: number(value) for name, value in study.measured.items()},
        },
        "spend": spend(data),
    }  # fmt: skip


def ranking(study: AnswerStudy) -> dict[str, Any]:
    """Return the items, best first, with scores, intervals and ranges of ranks."""
    table = study.fit.main_columns()
    compared = table["n_comparisons"] > 0
    order = np.lexsort((np.arange(len(compared)), table["rank"], ~compared))
    shown_items = order[:MOST_ITEMS]
    p_best = study.fit.p_best_
    return {
        "total": len(order),
        "n_shown": len(shown_items),
        "n_components": len(np.unique(table["component"][compared])),
        "rows": [
            {
                "item": shown(table["item"][a]),
                "score": number(table["score"][a]),
                "low": number(table["low"][a]), "high": number(table["high"][a]),
                "rank": int(table["rank"][a]),
                "rank_low": int(table["rank_low"][a]), "rank_high": int(table["rank_high"][a]),
                "p_best": number(p_best[a], 3),
                "n_comparisons": int(table["n_comparisons"][a]),
                "component": int(table["component"][a]),
            }
            for a in shown_items.tolist()
        ],
    }  # fmt: skip


def workers(study: AnswerStudy) -> dict[str, Any]:
    """Return the workers with reliability, sides and ties."""
    voters: Any = study.audit.parts.get("voters")
    sides: Any = study.audit.parts.get("sides")
    ties: Any = study.audit.parts.get("ties")
    columns: dict[str, Any] = {}
    if voters is not None:
        columns |= {"reliability": voters.reliability, "low": voters.low, "high": voters.high}
    if sides is not None:
        columns["left_share"] = sides.worker_left_share
    if ties is not None:
        columns["ties"] = ties.worker_share
    accuracy = getattr(study.fit, "worker_accuracy_", None)
    if accuracy is not None:
        columns["agreement_with_result"] = np.asarray(accuracy)
    quality = columns.get(
        "reliability", columns.get("agreement_with_result", study.labels.labels_per_worker)
    )
    return worker_rows(study, columns, -np.asarray(quality)) | {
        **({} if study.labels.has_workers else {"total": 0, "n_shown": 0, "rows": []}),
        "columns": list(columns),
        "reason": shown(study.audit.skipped.get("voters", "")),
    }


def sides_and_ties(study: AnswerStudy) -> dict[str, Any]:
    """Return the preference for a side and the use of ties, with the workers who stand out."""
    sides: Any = study.audit.parts.get("sides")
    ties: Any = study.audit.parts.get("ties")
    rows = []
    if sides is not None and study.labels.has_workers:
        order = np.argsort(-np.abs(np.nan_to_num(sides.worker_bias)), kind="stable")
        order = order[sides.n_votes[order] >= 8][:MOST_WORKERS]
        rows = [
            {
                "worker": shown(sides.workers[j : j + 1].tolist()[0]),
                "n_votes": int(sides.n_votes[j]),
                "left_share": number(sides.worker_left_share[j], 4),
                "bias": number(sides.worker_bias[j], 3),
                "low": number(sides.worker_low[j], 3), "high": number(sides.worker_high[j], 3),
                "one_sided": bool(sides.one_sided[j]),
            }
            for j in order.tolist()
        ]  # fmt: skip
    return {
        "reason": shown(study.audit.skipped.get("sides", "")) if sides is None else None,
        "bias": None if sides is None else number(sides.bias, 3),
        "low": None if sides is None else number(sides.low, 3),
        "high": None if sides is None else number(sides.high, 3),
        "left_share": None if sides is None else number(sides.left_share, 4),
        "ties": None if ties is None else number(ties.share, 4),
        "rows": rows,
    }


def contradictions(study: AnswerStudy) -> dict[str, Any]:
    """Return reversed votes on the same pair, and cycles of three items."""
    part: Any = study.audit.parts.get("contradictions")
    cycles: Any = study.audit.parts.get("cycles")
    skipped = study.audit.skipped
    return {
        "repeats": None if part is None else {
            "n": int(part.n_repeats), "opposite": int(part.n_opposite),
            "expected": number(part.expected, 4),
        },
        "cycles": None if cycles is None else cycles.to_dict(),
        "reasons": [shown(skipped[name]) for name in ("contradictions", "cycles")
                    if name in skipped],
    }  # fmt: skip


def connectivity(study: AnswerStudy) -> dict[str, Any]:
    """Return the parts of items that can be compared with each other."""
    data, view = study.labels, study.view
    compared = data.comparisons_per_item > 0
    parts = []
    for number_of in np.unique(view.component[compared]).tolist():
        ids = data.items[compared & (view.component == number_of)].tolist()
        parts.append(
            {"n_items": len(ids), "items": [shown(one) for one in ids[:MOST_NAMED]],
             "n_more": max(0, len(ids) - MOST_NAMED)}
        )  # fmt: skip
    return {
        "n_parts": len(parts),
        "n_bare": int((~compared).sum()),
        "least": int(data.comparisons_per_item[compared].min()) if compared.any() else 0,
        "median": float(np.median(data.comparisons_per_item[compared])) if compared.any() else 0.0,
        "parts": parts if len(parts) > 1 else [],
    }


def _ranking_chart(summary: Summary) -> dict[str, Any]:
    return {"chart": scores_by_rank(summary["ranking"]["rows"])}


# Finding → its remedy, as arguments of `wisecrowd`; {file} is the file of annotations. The options
# for reading, such as --type, are added.
COMMANDS = {
    "adversaries": "audit {file} --prune-to cleaned.csv --unlabelled drop",
    "random-voters": "audit {file} --prune-to cleaned.csv --unlabelled drop",
    "kept-spammers": "aggregate {file} -m crowd-bt -o ranking.csv",
    "no-signal": "inspect {first}",
    "side-bias": "aggregate {file} -m bradley-terry -p side=true -o ranking.csv",
    "side-clickers": "aggregate {file} -m worker-ties -o ranking.csv",
    "one-sided-workers": "audit {file} --part sides -o audit",
    "tie-clickers": "aggregate {file} -m worker-ties -o ranking.csv",
    "many-ties": "aggregate {file} -m davidson -o ranking.csv",
    "contradictory-crowd": "audit {file} --part contradictions -o audit",
    "inconsistent-workers": "aggregate {file} -m crowd-bt -o ranking.csv",
    "cycles": "audit {file} --part cycles --json",
    "separate-items": "audit {file} --part connectivity -o audit",
    "items-without-votes": "audit {file} --part connectivity -o audit",
    "few-comparisons": "audit {file} --part connectivity -o audit",
}
CALLS = {
    "adversaries": 'wc.audit.clean(labels, ["spammers"]).labels',
    "random-voters": 'wc.audit.clean(labels, ["spammers"]).labels',
    "kept-spammers": 'wc.aggregate(labels, "crowd-bt")',
    "side-bias": 'wc.aggregate(labels, "bradley-terry", side=True)',
    "side-clickers": 'wc.aggregate(labels, "worker-ties")',
    "tie-clickers": 'wc.aggregate(labels, "worker-ties")',
    "many-ties": 'wc.aggregate(labels, "davidson")',
    "separate-items": 'wc.audit.audit_crowd(labels, parts=["connectivity"]).tables()',
    "": 'wc.aggregate(labels, "crowd-bt")',
}
PLAN = answer_report(
    template="pair_verdict",
    content={
        "verdict": verdict,
        "ranking": ranking,
        "workers": workers,
        "sides": sides_and_ties,
        "contradictions": contradictions,
        "connectivity": connectivity,
    },
    sections={
        "ranking": ("Ranking", _ranking_chart),
        "workers": ("Workers", of_workers(reliability_of_voters), "pair_workers"),
        "sides": ("Sides and ties", nothing),
        "contradictions": ("Contradictions and cycles", nothing),
        "connectivity": ("Connectivity", nothing),
    },
    commands=COMMANDS,
    calls=CALLS,
    worker_findings=(
        "adversaries",
        "random-voters",
        "side-clickers",
        "one-sided-workers",
        "tie-clickers",
        "inconsistent-workers",
    ),
    methods=("bradley-terry", "crowd-bt", "davidson", "worker-ties"),
)
