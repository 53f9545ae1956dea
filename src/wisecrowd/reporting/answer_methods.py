"""Comparison of methods by how well they predict labels that were hidden from them."""

from __future__ import annotations

import warnings
from typing import Any

from wisecrowd.core.exceptions import WisecrowdError, WisecrowdWarning
from wisecrowd.core.registry import get_method
from wisecrowd.inference.scorers import scorer_of
from wisecrowd.reporting.answer_study import AnswerStudy
from wisecrowd.reporting.plans import report_plan
from wisecrowd.reporting.text import shown

MOST = 30_000  # labels up to which every method is fitted again for each fold


def methods_by_held_out_score(study: AnswerStudy) -> dict[str, Any]:
    """Return the held-out scores of a few methods, best first, and their agreement.

    The first of the rows is the best one. ``near_best`` tells whether the difference from it is at
    most its own standard error.
    """
    data = study.labels
    scorer = scorer_of(data)
    names = list(dict.fromkeys([study.method, *report_plan(data).methods]))
    rows: list[dict[str, Any]] = []
    left_out: dict[str, str] = {}
    scores: dict[str, Any] = {}
    plan = scorer.plan(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WisecrowdWarning)
        for name in names:
            try:
                make = _maker(study, name)
                fitted = study.fit if name == study.method else make()._fit_without_checks(data)
                agreement = scorer.agreement(study.fit, fitted)
                if plan.n_hidden and data.n_annotations <= MOST:
                    scores[name] = scorer.score_held_out(_fitter(make), plan)
            except WisecrowdError as error:
                left_out[name] = shown(str(error))
                continue
            rows.append({"name": name, "agreement": float(agreement)})
    best = max(scores, key=lambda name: scores[name].mean) if scores else None
    for row in rows:
        one = scores.get(row["name"])
        row["score"] = None if one is None else float(one.mean)
        row["standard_error"] = None if one is None else float(one.standard_error)
        row["near_best"] = best is not None and one is not None and _near(one, scores[best])
    rows.sort(key=lambda row: (row["score"] is None, -(row["score"] or 0.0)))
    return {
        "reported": study.method,
        "best": best,
        "rows": rows,
        "left_out": left_out,
        "reason": None if scores else _reason(plan, data),
        "explanation": scorer.explanations[0],
    }


def _maker(study: AnswerStudy, name: str) -> Any:
    if name == study.method:
        return lambda: type(study.fit)(**study.fit.get_params(deep=False))
    return get_method(name)


def _fitter(make: Any) -> Any:
    """Return a function that fits a new copy of a method to some annotations."""
    return lambda visible: make()._fit_without_checks(visible)


def _near(one: Any, best: Any) -> bool:
    from wisecrowd.inference.held_out_labels import paired_difference

    if one is best:
        return True
    change, error = paired_difference(best, one)
    return bool(change <= error)


def _reason(plan: Any, data: Any) -> str:
    if not plan.n_hidden:
        return "There are too few labels to hide some of them."
    return f"There are more than {MOST} labels: run wisecrowd compare."
