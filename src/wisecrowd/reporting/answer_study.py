"""Reports on answers that are not classes: study, comparison of methods, and the common plan."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wisecrowd.audit.crowd_audit import Audit, Shared, check_parts, plan_of, run_parts
from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdError, WisecrowdWarning
from wisecrowd.core.kinds import kind_of
from wisecrowd.core.part import NotApplicable
from wisecrowd.core.registry import get_method, kebab_case, names_default
from wisecrowd.inference.scorers import scorer_of
from wisecrowd.reporting.display import shown
from wisecrowd.reporting.health import columns_of, state_of
from wisecrowd.reporting.money import money
from wisecrowd.reporting.plans import Content, ReportPlan, report_plan
from wisecrowd.reporting.sections import SECTIONS, nothing
from wisecrowd.reporting.study import require_alone
from wisecrowd.truth.measured_accuracy import MeasuredAccuracy, accuracy


@dataclass(frozen=True, eq=False)
class AnswerStudy:
    """Everything that a report on numbers, pairs or sequences is computed from.

    Attributes
    ----------
    labels : CrowdNumbers, CrowdPairs or CrowdSequences
    fit : fitted method
        Its answers are reported. It has seen the gold.
    method : str
        Its command-line name.
    audit : Audit
    view : NumberView, PairView or SequenceView
        The data compared with the consensus of the others.
    measured : mapping of str to float, optional
        Scores of a fit without gold against the truth or the gold.
    known_from : "truth", "gold", "check list" or None
    seed : int
    checked : MeasuredAccuracy, optional
        What a check list says of the answers.
    """

    labels: Any
    fit: Any
    method: str
    audit: Audit
    view: Any
    measured: dict[str, float] | None
    known_from: str | None
    seed: int
    checked: MeasuredAccuracy | None = None


def study_answers(
    data: Any,
    *,
    method: str | Aggregator | None = None,
    fit: Any = None,
    gold: Any = None,
    truth: Any = None,
    checked: Any = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    random_state: int = 0,
) -> AnswerStudy:
    """Fit and audit numbers, pairs or sequences for a report.

    Parameters
    ----------
    data : CrowdNumbers, CrowdPairs or CrowdSequences
    method : str or unfitted method, optional
        By default the default method of the kind.
    fit : fitted method, optional
        A fit of these data, reported instead of ``method``.
    gold, truth
        Known answers: the fit uses gold; truth is used only to score it.
    checked : frame, optional
        A check list with answers, used instead of truth.
    options : mapping of part of the audit to keywords, optional
    random_state : int
    """
    if fit is not None and gold is not None:
        raise ParameterError(
            "gold cannot be used with fit; give truth to score it, or method instead of fit."
        )
    if checked is not None:
        require_alone(gold, truth)
    kind = kind_of(data)
    parts = plan_of(data).parts
    check_parts(options, parts)
    known = truth if truth is not None else gold
    known_from = "truth" if truth is not None else "gold" if gold is not None else None
    scorer = scorer_of(data)
    matched = scorer.match(known, data)
    shared = Shared(data, None, None, random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WisecrowdWarning)  # the page shows warnings_ itself
        blind = _checked(fit, data) if fit is not None else _unfitted(method, kind).fit(data)
        reported = blind if gold is None else _unfitted(method, kind).fit(data, gold=gold)
        found = run_parts(
            data, parts, shared, options or {}, skip_on=(NotApplicable, WisecrowdError)
        )
    measured = None if matched is None else scorer.score(blind, matched)
    by_list = None if checked is None else accuracy(data, checked, fit=blind)
    return AnswerStudy(
        data, reported, kebab_case(type(reported).__name__), found, shared.made("view"), measured,
        known_from, random_state, by_list,
    )  # fmt: skip


def _unfitted(method: str | Aggregator | None, kind: Any) -> Aggregator:
    if method is None or names_default(method):
        method = kind.default_method
    made = get_method(method)() if isinstance(method, str) else copy.deepcopy(method)
    if not isinstance(made, Aggregator):
        raise ParameterError(
            f"method is {method!r}; give a name such as {kind.default_method!r}, or a method."
        )
    if made.takes != kind.name:
        raise ParameterError(
            f"{kebab_case(type(made).__name__)} takes {made.takes}, and these are {kind.name}; "
            f"give a method such as {kind.default_method}."
        )
    return made


def _checked(fit: Any, data: Any) -> Any:
    if not getattr(fit, "__sklearn_is_fitted__", lambda: False)():
        raise ParameterError("fit is not fitted; call its fit first, or give it as method.")
    for name, ids in data.vocabularies().items():
        if not np.array_equal(getattr(fit, f"{name}_", ()), ids):
            raise DataError(
                f"The fit has other {name} than these data; give the fit of these data."
            )
    return fit


def health(study: AnswerStudy) -> dict[str, Any]:
    """Return the state of the data and of the fit as plain data."""
    return {
        **state_of(study.labels, study.fit),
        "columns": columns_of(study.labels),
        "skipped": {name: shown(reason) for name, reason in study.audit.skipped.items()},
    }


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
                reported = name == study.method  # what it chose, it keeps
                make = study.fit._for_refit if reported else get_method(name)

                def fit(visible: Any, make: Any = make) -> Any:
                    return make()._fit_without_checks(visible)

                fitted = study.fit if reported else fit(data)
                agreement = scorer.agreement(study.fit, fitted)
                if plan.n_hidden and data.n_annotations <= MOST:
                    scores[name] = scorer.score_held_out(fit, plan)
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
    reason = "There are too few labels to hide some of them."
    if plan.n_hidden:
        reason = f"There are more than {MOST} labels: run wisecrowd compare."
    return {
        "reported": study.method,
        "best": best,
        "rows": rows,
        "left_out": left_out,
        "reason": None if scores else reason,
        "explanation": scorer.explanations[0],
    }


def _near(one: Any, best: Any) -> bool:
    from wisecrowd.inference.held_out import paired_difference

    if one is best:
        return True
    change, error = paired_difference(best, one)
    return bool(change <= error)


def answer_report(
    *,
    template: str,
    content: Mapping[str, Content],
    sections: Mapping[str, Any],
    commands: Mapping[str, str],
    calls: Mapping[str, str],
    worker_findings: tuple[str, ...],
    methods: tuple[str, ...],
) -> ReportPlan:
    """Return the plan of a report.

    Parameters
    ----------
    template : str
        Template of the verdict.
    content, sections
        Those of the kind alone.
    commands, calls, worker_findings, methods
        See :class:`~wisecrowd.reporting.plans.ReportPlan`.
    """
    return ReportPlan(
        study=study_answers,
        content={**content, "methods": methods_by_held_out_score, "money": money, "health": health},
        sections={
            "verdict": ("Verdict", nothing, template),
            "next": SECTIONS["next"],
            **sections,
            "methods": ("Comparison of methods", nothing, "held_out"),
            **{name: SECTIONS[name] for name in ("money", "health", "reproduce")},
        },
        commands=commands,
        calls=calls,
        worker_findings=worker_findings,
        methods=methods,
    )
