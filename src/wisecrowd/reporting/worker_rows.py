"""Rows of workers: which of them a page shows, and their findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.reporting.text import shown
from wisecrowd.reporting.verdict import flags_by_worker

MOST_WORKERS = 500  # maximum number of rows of the table


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
        Quality by which workers are ordered: higher is worse; not a number comes last.
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
    quality = np.round(np.where(np.isfinite(worst), -np.asarray(worst), np.inf), 9)
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
