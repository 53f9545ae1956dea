"""Rows of workers: which of them a page shows, and their findings."""

from __future__ import annotations

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


def worker_rows(study: Any, columns: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the table of workers, most labels first; workers with findings take priority.

    Parameters
    ----------
    study : AnswerStudy
    columns : mapping of name to (n_workers,) numbers
    """
    data = study.labels
    flags = flags_by_worker(study)
    n_labels = data.labels_per_worker
    known = np.zeros(data.n_workers, dtype=bool)
    known[sorted(flags)] = True
    by_need = np.lexsort((-n_labels, ~known))
    half = by_need[: min(int(known.sum()), MOST_WORKERS // 2)]
    busiest = np.argsort(-n_labels, kind="stable")
    kept = np.concatenate([half, busiest[~np.isin(busiest, half)]])[:MOST_WORKERS]
    order = kept[np.argsort(-n_labels[kept], kind="stable")]
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
