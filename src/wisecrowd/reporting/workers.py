"""Workers of a page: quality against number of labels, confusions, drift, and their findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.audit.workers_by_gold import JudgedWorkers
from wisecrowd.reporting.display import shown
from wisecrowd.reporting.study import Study
from wisecrowd.reporting.verdict import flags_by_worker

MOST_CELLS = 15_000  # total size of the confusion matrices
MOST_CLASSES = 12  # a wider matrix is unreadable; the most common mistakes are listed instead
MISTAKES = 6
PIECES = 6  # number of pieces of a worker's labels over time
FEWEST_IN_PIECE = 4


def workers(study: Study) -> dict[str, Any]:
    """Return the table of workers, worst first, with their details and their number.

    With known answers, each has the accuracy that they give; otherwise the agreement with the
    result, which is not an accuracy.
    """
    flags = flags_by_worker(study)
    table = study.fit.worker_columns()
    share = table["agreement_with_result"]
    known = _by_known_answers(study)
    if known:
        share = known["accuracy"]
    order = shown_workers(study.labels, flags, -share)
    detailed = _detailed(study, order, flags)
    drift = _drift(study, detailed)
    confusion = _confusions(study, detailed)
    agreement: Any = study.audit.parts.get("agreement")
    kappa = None if agreement is None else agreement.worker_kappa[:, 0]
    kinds = study.labels.worker_kind
    rows = [
        {
            "worker": shown(study.labels.workers[j : j + 1].tolist()[0]),
            "n_labels": int(table["n_labels"][j]),
            **_quality(share, known, j),
            "kappa": None if kappa is None else _number(kappa[j]),
            "kind": None if kinds is None else shown(kinds[j]),
            "flags": flags.get(j, []),
            "confusion": confusion.get(j),
            "drift": drift.get(j),
        }
        for j in order.tolist()
    ]
    present = study.labels.labels_per_worker > 0
    return {
        "total": study.labels.n_workers,
        "n_shown": len(rows),
        "n_detailed": len(detailed),
        "n_flagged": len(flags),
        "n_withheld": 0,  # see wisecrowd.reporting.withholding
        "withheld_below": 0,
        "median_accuracy" if known else "median_agreement": _number(np.median(share[present])),
        "n_checked": known["n_gold"] if known else 0,
        "classes": [shown(c) for c in study.labels.classes[:MOST_CLASSES].tolist()],
        "whole_matrix": study.labels.n_classes <= MOST_CLASSES,
        "has_time": "timestamp" in study.labels.columns,
        "rows": rows,
    }


def _by_known_answers(study: Study) -> dict[str, Any]:
    """Return accuracy, low, high and n_checked (n_workers,) by known answers; empty without."""
    part = study.audit.parts.get("workers")
    if not isinstance(part, JudgedWorkers):
        return {}
    place = lookup(part.columns["worker"], study.labels.workers)
    found: dict[str, Any] = {"n_gold": part.n_gold}
    for name in ("accuracy", "low", "high", "n_checked"):
        found[name] = np.full(study.labels.n_workers, np.nan)
        found[name][place] = part.columns[name]
    return found


def _quality(share: Floats, known: Mapping[str, Any], j: int) -> dict[str, Any]:
    """Return the accuracy of a worker with its interval, or the agreement with the result."""
    if not known:
        return {"agreement_with_result": _number(share[j])}
    ends = {name: _number(known[name][j]) for name in ("accuracy", "low", "high")}
    return {**ends, "n_checked": int(np.nan_to_num(known["n_checked"][j]))}


def _detailed(study: Study, order: NDArray[np.intp], flags: Any) -> NDArray[np.intp]:
    """Return the workers whose details are shown, up to the limit."""
    K = study.labels.n_classes
    room = MOST_CELLS // (K * K) if K <= MOST_CLASSES else MOST_CELLS // (4 * MISTAKES)
    calm = np.array([j not in flags for j in order.tolist()], dtype=bool)
    return np.asarray(order[np.argsort(calm, kind="stable")][:room])


def _number(value: Any, digits: int = 4) -> float | None:
    return round(float(value), digits) if np.isfinite(value) else None


# --------------------------------------------------------------------------------------- confusion


def _confusions(study: Study, chosen: NDArray[np.intp]) -> dict[int, dict[str, Any]]:
    """Return, by worker, the matrix in percent with its row counts, or the most common mistakes."""
    K = study.labels.n_classes
    if not len(chosen):
        return {}
    place = np.full(study.labels.n_workers, -1, dtype=np.int64)
    place[chosen] = np.arange(len(chosen))
    rows = np.flatnonzero(place[study.labels.worker] >= 0)
    of, truth = place[study.labels.worker[rows]], study.chosen[study.labels.task[rows]]
    said = study.labels.label[rows]
    if K > MOST_CLASSES:
        return _mistakes(study, chosen, of, truth, said)
    size = len(chosen) * K * K
    counts = np.bincount((of * K + truth) * K + said, minlength=size).reshape(-1, K, K)
    met = counts.sum(axis=2)
    own = getattr(study.fit, "confusion_", None)
    share = own[chosen] if isinstance(own, np.ndarray) else counts / np.maximum(met, 1)[:, :, None]
    percent = np.rint(100 * share).astype(int)
    return {
        int(j): {"percent": percent[n].tolist(), "met": met[n].tolist()}
        for n, j in enumerate(chosen.tolist())
    }


def _mistakes(study: Study, chosen: Any, of: Any, truth: Any, said: Any) -> dict[int, Any]:
    K = study.labels.n_classes
    wrong = truth != said
    key = (of[wrong].astype(np.int64) * K + truth[wrong]) * K + said[wrong]
    found, count = np.unique(key, return_counts=True)
    order = np.lexsort((found, -count, found // (K * K)))
    names, result = study.labels.classes, {}
    bounds = np.searchsorted((found // (K * K))[order], np.arange(len(chosen) + 1))
    for n, j in enumerate(chosen.tolist()):
        best = order[bounds[n] : bounds[n + 1]][:MISTAKES]
        result[int(j)] = {
            "mistakes": [
                [shown(names[found[b] // K % K]), shown(names[found[b] % K]), int(count[b])]
                for b in best.tolist()
            ]
        }
    return result


# ------------------------------------------------------------------------------------------- drift


def _drift(study: Study, chosen: NDArray[np.intp]) -> dict[int, list[float]]:
    """Return, by worker, the mean agreement with the others over time, in pieces of equal size.

    Agreement is the leave-one-out probability that the label is correct.
    """
    time = study.labels.columns.get("timestamp")
    if time is None or time.dtype.kind not in "Mmiuf" or not study.has_confusion:
        return {}
    from wisecrowd.kinds.classes.audit.shared import leave_one_out_posteriors

    wanted = set(chosen.tolist())
    few = PIECES * FEWEST_IN_PIECE
    found = {}
    for one in leave_one_out_posteriors(study.labels, study.law, few):
        if one.worker not in wanted:
            continue
        moments = time[one.rows]
        known = ~(np.isnat(moments) if moments.dtype.kind in "mM" else np.isnan(moments))
        order = np.flatnonzero(known)[np.argsort(moments[known], kind="stable")]
        if len(order) < few or moments[order[0]] == moments[order[-1]]:
            continue
        score = one.belief[order, one.label[order]]
        found[one.worker] = [
            round(float(piece.mean()), 3) for piece in np.array_split(score, PIECES)
        ]
    return found


MOST_WORKERS = 400  # maximum number of rows of the table


def number(value: Any, digits: int = 6) -> float | None:
    """Return a number with some significant digits; None if it is not finite.

    Examples
    --------
    >>> number(1234.56789), number(float("nan"))
    (1234.57, None)
    """
    return float(f"{float(value):.{digits}g}") if np.isfinite(value) else None


def shown_workers(data: Any, flags: Mapping[int, list[str]], worst: Any) -> NDArray[np.intp]:
    """Return the workers to show, worst first.

    Workers with findings take up to half of the places, the busiest ones the others. Workers with
    findings come first, by the order of the findings, which is that of their severity.

    Parameters
    ----------
    data : Annotations
    flags : mapping of worker to findings
    worst : (n_workers,) numbers
        Quality by which workers are ordered: higher is worse. Unknown ones come last.
    """
    n_labels = data.labels_per_worker
    severest = {flag: n for n, flag in enumerate(dict.fromkeys(f[0] for f in flags.values()))}
    place = np.full(data.n_workers, len(severest))
    for j, found in flags.items():
        place[j] = severest[found[0]]
    flagged = place < len(severest)
    by_need = np.lexsort((-n_labels, ~flagged))
    half = by_need[: min(int(flagged.sum()), MOST_WORKERS // 2)]
    busiest = np.argsort(-n_labels, kind="stable")
    kept = np.concatenate([half, busiest[~np.isin(busiest, half)]])[:MOST_WORKERS]
    known = np.isfinite(worst) & (n_labels > 0)
    quality = np.round(np.where(known, -np.asarray(worst), np.inf), 9)
    order = np.lexsort((kept, -n_labels[kept], quality[kept], place[kept]))
    return np.asarray(kept[order])


def worker_rows(study: Any, columns: dict[str, NDArray[Any]], worst: Any) -> dict[str, Any]:
    """Return the table of workers, worst first; see :func:`shown_workers`.

    Parameters
    ----------
    study : AnswerStudy
    columns : mapping of name to (n_workers,) numbers
    worst : (n_workers,) numbers
        Quality by which workers are ordered: higher is worse.
    """
    data = study.labels
    flags = flags_by_worker(study)
    n_labels = data.labels_per_worker
    order = shown_workers(data, flags, worst)
    kinds = data.worker_kind
    rows = [
        {
            "worker": shown(data.workers[j : j + 1].tolist()[0]),
            "n_labels": int(n_labels[j]),
            "kind": None if kinds is None else shown(kinds[j]),
            "flags": flags.get(j, []),
            **{name: number(values[j]) for name, values in columns.items()},
        }
        for j in order.tolist()
    ]
    return {
        "total": data.n_workers,
        "n_shown": len(rows),
        "n_flagged": len(flags),
        "n_withheld": 0,  # see wisecrowd.reporting.withholding
        "withheld_below": 0,
        "rows": rows,
    }
