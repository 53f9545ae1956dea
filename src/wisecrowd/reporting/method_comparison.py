"""Comparison of methods, and calibration of the stated confidence."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from wisecrowd.core.exceptions import WisecrowdError, WisecrowdWarning
from wisecrowd.core.registry import get_method
from wisecrowd.kinds.classes.methods.auto import Auto
from wisecrowd.reporting.plans import report_plan
from wisecrowd.reporting.study import Study, codes_of
from wisecrowd.reporting.verdict import wilson
from wisecrowd.truth.stratified import stratified_share

SLOW = {"glad": 100_000}  # maximum number of labels to run the method in a report
N_BINS = 10
LEVEL = 0.95


def methods_compared(study: Study) -> dict[str, Any]:
    """Return the agreement of a few fast methods with the reported one and with each other."""
    labels = study.labels
    chosen = {study.method: study.blind_chosen}
    left_out = {}
    for name in report_plan(labels).methods:
        if name in chosen:
            continue
        if labels.n_annotations > SLOW.get(name, labels.n_annotations):
            left_out[name] = f"left out: there are more than {SLOW[name]:,} labels."
            continue
        if name == "dawid-skene" and not study.has_confusion:
            left_out[name] = "left out: there are too many classes."
            continue
        try:
            chosen[name] = codes_of(_fitted(name, study), labels)
        except WisecrowdError as error:
            left_out[name] = str(error)
    labelled = labels.labels_per_task > 0
    names = list(chosen)
    agree = [
        [round(float(np.mean((chosen[a] == chosen[b])[labelled])), 4) for b in names] for a in names
    ]
    return {
        "names": names,
        "agreement": agree,
        **(
            {}
            if study.known is None
            else {"accuracy": [_accuracy(study, chosen[n]) for n in names]}
        ),
        "n_scored": len(study.scored),
        "left_out": left_out,
        "choice": _choice(study.fit),
    }


def _choice(fit: Any) -> dict[str, Any] | None:
    """Return how the default method chose; None for other methods."""
    if not isinstance(fit, Auto):
        return None
    scores = sorted(fit.scores_.items(), key=lambda item: -item[1]["score"])
    return {
        "chosen": fit.chosen_,
        "reason": fit.reason_,
        "scores": [{"name": name, **row} for name, row in scores],
        "agreement": [{"name": name, "share": share} for name, share in fit.agreement_.items()],
        "overruled": fit.overruled_,
    }


def _fitted(name: str, study: Study) -> Any:
    """Fit a method with its defaults, or return a fit that the study has made."""
    for member in study.members:
        if type(member) is get_method(name):
            return member
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WisecrowdWarning)
        return get_method(name)().fit(study.labels)


def _accuracy(study: Study, chosen: Any) -> dict[str, float] | None:
    if study.known is None or not len(study.scored):
        return None
    right = chosen[study.scored] == study.known[study.scored]
    if study.design is not None:
        stratum, sizes = study.design.stratum[study.scored], study.design.sizes
        n_right, n = (np.bincount(stratum, one, len(sizes)) for one in (right, right >= 0))
        found = stratified_share(n_right, n, sizes, LEVEL)
        return {"value": float(found.value), "low": float(found.low), "high": float(found.high)}
    value = float(np.mean(right))
    low, high = wilson(value, len(study.scored))
    return {"value": value, "low": low, "high": high}


def calibration(study: Study) -> dict[str, Any] | None:
    """Return accuracy against stated confidence on tasks with known classes; None without any."""
    if study.known is None or not len(study.scored):
        return None
    sure = np.asarray(study.blind.confidence_)[study.scored]
    # Bins of (a, b], as in the calibration error.
    place = np.clip(np.ceil(sure * N_BINS).astype(int) - 1, 0, N_BINS - 1)
    count = np.bincount(place, minlength=N_BINS)
    right = np.bincount(place, study.right, N_BINS)
    stated = np.bincount(place, sure, N_BINS)
    rows = []
    for b in np.flatnonzero(count).tolist():
        accuracy = float(right[b] / count[b])
        low, high = wilson(accuracy, int(count[b]))
        rows.append(
            {
                "from": b / N_BINS, "to": (b + 1) / N_BINS, "count": int(count[b]),
                "confidence": float(stated[b] / count[b]),
                "accuracy": accuracy, "low": low, "high": high,
            }
        )  # fmt: skip
    error = float(np.abs(right - stated).sum() / len(sure))
    return {"n": len(sure), "from": study.known_from, "error": error, "rows": rows}
