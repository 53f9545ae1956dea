"""Tasks on which workers disagree, and the classes that they confuse."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.reporting.study import Study
from wisecrowd.reporting.task_votes import votes_by_worker
from wisecrowd.reporting.text import shown

Floats = NDArray[np.float64]

MOST_TASKS = 100
MOST_VOTES = 6  # maximum number of classes named in the votes of a task
WIDEST_MATRIX = 16
MOST_PAIRS = 25
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9)  # bin limits of the share of the most common label


class _Votes(NamedTuple):
    """Distinct labels of each task, sorted by task."""

    task: NDArray[np.int64]
    label: NDArray[np.int64]
    times: NDArray[np.int64]
    indptr: NDArray[np.int64]


def tasks(study: Study) -> dict[str, Any]:
    """Return the tasks with the most divided votes, and the distribution over all tasks."""
    votes = _votes(study)
    n = study.labels.labels_per_task
    share = votes.times / n[votes.task]
    entropy = np.bincount(votes.task, -share * np.log2(share), study.labels.n_tasks)
    top = np.zeros(study.labels.n_tasks)
    np.maximum.at(top, votes.task, share)
    divided = np.flatnonzero(entropy > 1e-9)
    order = np.lexsort((study.fit.confidence_[divided], -n[divided], -entropy[divided].round(6)))
    first = divided[order][:MOST_TASKS]
    several = n >= 2
    return {
        "total": len(divided),
        "n_shown": len(first),
        "n_several": int(several.sum()),
        "n_unanimous": int((several & (entropy <= 1e-9)).sum()),
        "levels": _levels(top[several]),
        "rows": [_row(study, votes, i, float(entropy[i])) for i in first.tolist()],
    }


def _votes(study: Study) -> _Votes:
    labels, K = study.labels, study.labels.n_classes
    key = np.sort(labels.task.astype(np.int64) * K + labels.label)
    start = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
    count = np.diff(np.r_[start, len(key)])
    task, label = key[start] // K, key[start] % K
    return _Votes(task, label, count, np.searchsorted(task, np.arange(labels.n_tasks + 1)))


def _levels(top: Floats) -> list[dict[str, Any]]:
    """Return the number of tasks by share of the most common label."""
    place = np.searchsorted(LEVELS, top, side="right")
    unanimous = top >= 1 - 1e-9
    counts = np.bincount(place[~unanimous], minlength=len(LEVELS) + 1).tolist()
    ends = (0.0, *LEVELS, 1.0)
    names = [f"{100 * a:.0f}–{100 * b:.0f} %" for a, b in pairwise(ends)]
    names[0] = "under 50 %"
    rows = [{"name": name, "count": n} for name, n in zip(names, counts, strict=True)]
    return [*rows, {"name": "all agree", "count": int(unanimous.sum())}]


def _row(study: Study, votes: _Votes, i: int, entropy: float) -> dict[str, Any]:
    rows = np.arange(votes.indptr[i], votes.indptr[i + 1])
    rows = rows[np.argsort(-votes.times[rows], kind="stable")]
    names = study.labels.classes[votes.label[rows[:MOST_VOTES]]].tolist()
    ends = slice(study.labels.indptr[i], study.labels.indptr[i + 1])
    said = study.labels.classes[study.labels.label[ends]].tolist()
    return {
        "task": shown(study.labels.tasks[i : i + 1].tolist()[0]),
        "label": shown(study.labels.classes[study.chosen[i] : study.chosen[i] + 1].tolist()[0]),
        "confidence": round(float(study.fit.confidence_[i]), 4),
        "n_labels": int(study.labels.labels_per_task[i]),
        "entropy": round(entropy, 3),
        "votes": [[shown(c), int(n)] for c, n in zip(names, votes.times[rows], strict=False)],
        "n_more": max(0, len(rows) - MOST_VOTES),
        **votes_by_worker(study.labels, i, said),
    }


def confused_classes(study: Study) -> dict[str, Any]:
    """Return the labels given to the tasks of each class, according to the fit."""
    labels, K = study.labels, study.labels.n_classes
    key = study.chosen[labels.task].astype(np.int64) * K + labels.label
    found, count = np.unique(key, return_counts=True)
    total = np.bincount(found // K, count, K)
    share = count / np.maximum(total[found // K], 1)
    wrong = np.flatnonzero(found // K != found % K)
    top = wrong[np.lexsort((found[wrong], -count[wrong]))][:MOST_PAIRS]
    names = labels.classes
    matrix = None
    if K <= WIDEST_MATRIX:
        table = np.zeros(K * K)
        table[found] = share
        matrix = np.rint(100 * table.reshape(K, K)).astype(int).tolist()
    return {
        "classes": [shown(c) for c in names[:WIDEST_MATRIX].tolist()],
        "n_classes": K,
        "matrix": matrix,
        "n_tasks": np.bincount(study.chosen, minlength=K)[:WIDEST_MATRIX].tolist(),
        "n_pairs": len(wrong),
        "pairs": [
            {
                "class": shown(names[found[p] // K]),
                "label": shown(names[found[p] % K]),
                "count": int(count[p]),
                "share": round(float(share[p]), 4),
            }
            for p in top.tolist()
        ],
    }
