"""Verdict: the main results, and the next steps."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.model_workers import only_models
from wisecrowd.core.registry import names_default
from wisecrowd.kinds.classes.audit.confidence import (
    Confidence,
    claim_in_context,
    measure_confidence,
)
from wisecrowd.reporting.plans import report_plan
from wisecrowd.reporting.study import Study
from wisecrowd.truth.sentences import measured_sentence

MOST_AFFECTED = 12  # maximum number of ids that a finding names

CHECK = "check {file} -n 60{chosen} -o check.csv"

# Finding → its remedy, as arguments of `wisecrowd`; {file} is the file of annotations.
COMMANDS = {
    "spammers": "audit {file} --prune-to cleaned.csv --unlabelled spare",
    "kept-spammers": "audit {file} --part spammers -o audit",
    "no-signal": "inspect {first}",
    "clones": "audit {file} --prune clones --prune-to cleaned.csv",
    "dependent-labels": "audit {file} --prune clones --prune collusion --prune-to cleaned.csv",
    "adversarial-majority": "audit {file} --part collusion -o audit",
    "switched-classes": "audit {file} --part collusion -o audit",
    "overruled-vote": "aggregate {file} -m majority-vote -o labels.csv",
    "unanimous-overruled": "aggregate {file} -m majority-vote -o labels.csv",
    "few-tasks": "aggregate {file} -m majority-vote -o labels.csv",
    "one-label-per-task": "aggregate {file} -m majority-vote -o labels.csv",
    "assumed-frequencies": "aggregate {file} -m dawid-skene -o labels.csv",
    "sparse-workers": "compare {file}",
    "ballot-stuffing": "inspect {first}",
    "over-confidence": "aggregate {file} --calibrate -o labels.csv",
    "not-converged": "aggregate {file} -m {method} -p max_iter=1000 -o labels.csv",
    "overruled-majority": "aggregate {file} --gold gold.csv -o labels.csv",
    "members-disagree": "aggregate {file} --gold gold.csv -o labels.csv",
    "collusion": "aggregate {file} -m group-aware-dawid-skene -o labels.csv",
    "dependent-group": "aggregate {file} -m group-aware-dawid-skene -o labels.csv",
    "attacked-tasks": "audit {file} --part attacked-tasks -o audit",
    "group-gap": "report {file} --attributes tasks.csv --gold gold.csv -o report.html",
    "group-bias": "audit {file} --part group-gaps --attributes tasks.csv -o audit",
    "rare-class": "audit {file} --part rare-classes -o audit",
    "label-distribution": "audit {file} --part label-distribution -o audit",
    "fast-and-wrong": "audit {file} --part response-times -o audit",
    "fast": "audit {file} --part response-times -o audit",
    "drift": "aggregate {file} {drop} -o labels.csv",
    "drift-upwards": "audit {file} --part drift -o audit",
    "agreement-at-chance": "audit {file} --part agreement --part spammers -o audit",
    "agreement-below-chance": "aggregate {file} -m dawid-skene -o labels.csv",
    "agreement": "audit {file} --part agreement -o audit",
    "accuracy": "aggregate {file} -m {reported} -o labels.csv",
    "mean-confidence": CHECK,
    "model-workers": CHECK,
    "gold-contradicts-model": "audit {file} --gold gold.csv --part workers -o audit",
    "abstention-class": "inspect {first}",
    "misfit": CHECK,
    "overconfident": "aggregate {file} -m glad -o labels.csv",
    "not-identified": "audit {file} --part identifiability -o audit",
    "unidentified-workers": "audit {file} --part identifiability -o audit",
    "separate-parts": "audit {file} --part identifiability -o audit",
}
# The same without a file, for a crowd in memory.
CALLS = {
    "spammers": 'wc.audit.prune(labels, unlabelled="spare").labels',
    "kept-spammers": "wc.audit.find_spammers(labels).tables()",
    "no-signal": "labels.to_dict()",
    "clones": "wc.audit.collapse_clones(labels).labels",
    "dependent-labels": 'wc.audit.clean(labels, ["clones", "collusion"]).labels',
    "overruled-majority": "wc.aggregate(labels, gold=gold)",
    "members-disagree": "wc.aggregate(labels, gold=gold)",
    "collusion": 'wc.aggregate(labels, "group-aware-dawid-skene")',
    "dependent-group": 'wc.aggregate(labels, "group-aware-dawid-skene")',
    "group-gap": "wc.audit.find_group_gaps(labels, gold=gold).tables()",
    "group-bias": "wc.audit.find_group_gaps(labels).tables()",
    "rare-class": "wc.audit.find_rare_classes(labels).tables()",
    "fast-and-wrong": "wc.audit.find_fast_workers(labels).tables()",
    "fast": "wc.audit.find_fast_workers(labels).tables()",
    "drift-upwards": "wc.audit.find_drift(labels).tables()",
    "agreement-at-chance": "wc.audit.find_spammers(labels).tables()",
    "agreement": "wc.audit.measure_agreement(labels).tables()",
    "mean-confidence": "wc.truth.check_list(labels, 60)",
    "model-workers": "wc.truth.check_list(labels, 60)",
    "gold-contradicts-model": "wc.truth.workers(labels, gold).table()",
    "misfit": "wc.truth.check_list(labels, 60)",
    "overconfident": 'wc.aggregate(labels, "glad")',
    "not-identified": "wc.audit.identifiability_report(labels).tables()",
    "unidentified-workers": "wc.audit.identifiability_report(labels).tables()",
    "separate-parts": "wc.audit.identifiability_report(labels).tables()",
}
# Other remedies, in order, if the first one does not hold on the data; the last one only shows.
OTHERS = {
    "collusion": (
        "audit {file} --prune collusion --prune-to cleaned.csv --unlabelled spare",
        "audit {file} --part collusion -o audit",
    ),
    "dependent-group": ("audit {file} --part groups -o audit",),
    "clones": (
        "aggregate {file} -m group-aware-dawid-skene -o labels.csv",
        "audit {file} --part clones -o audit",
    ),
    "dependent-labels": ("audit {file} --part clones --part collusion -o audit",),
    "spammers": ("audit {file} --part spammers -o audit",),
    "drift": ("audit {file} --part drift -o audit",),
    "overconfident": ("aggregate {file} --calibrate -o labels.csv",),
    "overruled-vote": ("compare {file}",),
    "unanimous-overruled": ("compare {file}",),
    "few-tasks": ("compare {file}",),
    "one-label-per-task": ("compare {file}",),
    "assumed-frequencies": ("compare {file}",),
    "agreement-below-chance": ("audit {file} --part agreement -o audit",),
    "not-converged": ("compare {file}",),
}
PRUNED = ("spammers", "adversaries", "random-voters")  # if that helps
OTHER_COMMAND = "audit {file} -o audit"


def verdict(study: Study) -> dict[str, Any]:
    """Return sizes, confidence or measured accuracy, agreement and cost as plain data."""
    labels = study.labels
    return {
        "n_tasks": labels.n_tasks,
        "n_workers": labels.n_workers,
        "n_classes": labels.n_classes,
        "n_labels": labels.n_annotations,
        "n_unlabelled": int((labels.labels_per_task == 0).sum()),
        "method": study.method,
        **_confidence(study),
        "agreement": _agreement(study),
        "spend": spend(labels),
        "certain": float(np.mean(study.fit.confidence_ >= 0.9)) if labels.n_tasks else 0.0,
    }


def _confidence(study: Study) -> dict[str, Any]:
    """Return what the results claim and, where some are known, the share that is right."""
    part = study.audit.parts.get("confidence")
    if not isinstance(part, Confidence):  # the audits of some kinds lack it
        part = measure_confidence(
            study.labels, truth=_known_classes(study), fit=study.blind, random_state=study.seed
        )
    measured = None
    if part.n_gold:
        measured = {
            "value": part.accuracy, "low": part.low, "high": part.high, "n": part.n_gold,
            "n_errors": part.n_errors, "level": part.level, "from": study.known_from,
            "text": measured_sentence(
                part.accuracy, part.low, part.high, part.n_gold, part.n_errors, part.n_tasks
            ),
            "basis": " ".join(part.caveats),
        }  # fmt: skip
    return {
        "mean_confidence": part.mean_confidence,
        "context": claim_in_context(part.mean_confidence, models=only_models(study.labels)),
        "measured": measured,
    }


def _known_classes(study: Study) -> NDArray[Any] | None:
    """Return the known classes (n_tasks,), None where unknown; another class is no label's."""
    if study.known is None:
        return None
    found = np.append(study.labels.classes.astype(object), [object()])[study.known]
    found[study.known < 0] = None
    return np.asarray(found)


def wilson(share: float, n: float) -> tuple[float, float]:
    """Return the ends of Wilson's 95% interval of a share.

    Examples
    --------
    >>> [round(x, 3) for x in wilson(0.5, 100)]
    [0.404, 0.596]
    """
    z2 = 1.96**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    reach = 1.96 * np.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    low, high = min(middle - reach, share), max(middle + reach, share)  # despite rounding
    return float(max(low, 0.0)), float(min(high, 1.0))


def _agreement(study: Study) -> dict[str, Any] | None:
    part = study.audit.parts.get("agreement")
    if part is None:
        return None
    found: Any = part
    value, low, high = found.alpha.tolist()
    if np.isnan(value):
        return None
    return {"value": value, "low": low, "high": high, "level": found.level}


def spend(labels: Annotations) -> dict[str, Any] | None:
    """Return the cost of the labels, in total and per task; None if it is unknown."""
    cost = labels.columns.get("cost")
    if cost is None:
        return None
    known = np.asarray(cost, dtype=np.float64)
    known = known[np.isfinite(known)]
    if not len(known):
        return None
    per_task = float(known.sum()) / max(labels.n_tasks, 1)
    missing = labels.n_annotations - len(known)
    return {"total": float(known.sum()), "per_task": per_task, "n_missing": missing}


def command_for(
    template: str,
    files: Sequence[str],
    reading: Sequence[str] = (),
    *,
    method: str = "dawid-skene",
    reported: str = "auto",
    moments: Mapping[Any, Any] | None = None,
) -> str:
    """Return a command with its files and options filled in.

    Parameters
    ----------
    template : str
        Arguments of ``wisecrowd``, as in ``COMMANDS``.
    files : sequence of str
        The files of annotations.
    reading : sequence of str
        Options for reading them, such as ``["--task", "image"]``.
    method, reported : str
        Method that the default method chose, and the method of the report.
    moments : mapping of worker to time, optional
        Times after which labels of workers are dropped.

    Examples
    --------
    >>> command_for(COMMANDS["spammers"], ["my answers.csv"])
    "wisecrowd audit 'my answers.csv' --prune-to cleaned.csv --unlabelled spare"
    """
    quoted = [shlex.quote(file) for file in files]
    drop = [f"--drop-after {shlex.quote(f'{worker}={moment}')}"
            for worker, moment in (moments or {}).items()]  # fmt: skip
    command = "wisecrowd " + template.format(
        file=" ".join(quoted), first=quoted[0], method=method, reported=reported,
        drop=" ".join(drop), chosen="" if names_default(reported) else f" -m {reported}",
    )  # fmt: skip
    if "{first}" in template:  # wisecrowd inspect needs no reading options
        return command
    return " ".join([command, *map(shlex.quote, reading)])


def flags_by_worker(study: Any) -> Mapping[int, list[str]]:
    """Return, by worker code, the ids of the findings that name the worker."""
    from wisecrowd.core.ids.encoding import lookup

    flags: dict[int, list[str]] = {}
    about_workers = report_plan(study.labels).worker_findings
    for found in study.audit.findings.at_least("low"):
        if found.id not in about_workers or not found.affected:
            continue
        for code in lookup(list(found.affected), study.labels.workers).tolist():
            if code >= 0 and found.id not in flags.setdefault(code, []):
                flags[code].append(found.id)
    return flags


WORKER_FINDINGS = (
    "spammers", "collusion", "dependent-group", "label-distribution",
    "agreement-below-chance", "drift", "fast-and-wrong", "clones", "ballot-stuffing",
    "adversarial-majority", "group-bias",
)  # fmt: skip
