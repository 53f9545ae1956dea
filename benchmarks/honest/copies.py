"""Accusations of copying: planted copies are named, and good small teams are not called copies.

``python -m benchmarks.run honest_copies``. Copies are planted as in ``benchmarks.accuracy.copies``.
A copier is named if a finding of medium or high severity names the copier together with the
source. Teams are the busiest good workers who share tasks: those whose accuracy is at least the
median.
"""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.accuracy.copies import CLASSES, copied_crowd
from benchmarks.accuracy.real_data import data_folder, read_set
from benchmarks.rows import Row
from wisecrowd import CrowdLabels
from wisecrowd.audit import audit_crowd

COPIERS, SEEDS, FIRST_SEED = ((1,), (2,), (3,), (3, 3)), 6, 9000
CHOSEN_ON = ("bluebird", "dices350", "dog", "face", "leaves9")
JUDGED_ON = ("rte", "sp_amt", "temp", "valence5", "zc_us")
SIZES = (4, 6)
FEWEST_SHARED = 10  # tasks that two members of a team must share
PARTS = ("clones", "collusion")


def accusations(labels: CrowdLabels) -> list:
    """Return the findings of copying and collusion of medium or high severity."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(audit_crowd(labels, parts=PARTS).findings.at_least("medium"))


def planted(n_seeds: int = SEEDS) -> tuple[int, int, int]:
    """Return how many copiers are named, at high severity, and how many there are."""
    named = high = total = 0
    for copiers in COPIERS:
        for seed in range(n_seeds):
            K = CLASSES[seed % len(CLASSES)]
            labels, _, group = copied_crowd(FIRST_SEED + seed, copiers, K)
            found = accusations(labels)
            for copier in range(36, len(group)):
                both = [one for one in found if {int(group[copier]), copier} <= {*one.affected}]
                named += bool(both)
                high += any(one.severity == "high" for one in both)
                total += 1
    return named, high, total


def team(labels: CrowdLabels, truth: dict, size: int) -> CrowdLabels | None:
    """Return the labels of the busiest good workers of whom each two share tasks."""
    code = {value: k for k, value in enumerate(labels.classes.tolist())}
    true = np.array([code.get(truth.get(task), -1) for task in labels.tasks.tolist()])
    known = true[labels.task] >= 0
    J = labels.n_workers
    right = np.bincount(labels.worker, known & (labels.label == true[labels.task]), J)
    n = np.bincount(labels.worker, known, J)
    accuracy = right / np.maximum(n, 1)
    good = (n >= FEWEST_SHARED) & (accuracy >= np.median(accuracy[n >= FEWEST_SHARED]))
    tasks_of = [set(labels.task[labels.worker == j].tolist()) for j in range(J)]
    busy = sorted(np.flatnonzero(good).tolist(), key=lambda j: (-n[j], j))
    for first in busy:
        members = [first]
        for j in busy:
            if j != first and all(len(tasks_of[j] & tasks_of[m]) >= FEWEST_SHARED for m in members):
                members.append(j)
            if len(members) == size:
                some = labels.select_annotations(np.isin(labels.worker, members))
                some = some.select_workers(np.array(sorted(members)))
                return some[some.labels_per_task > 0]
    return None


def teams(names: tuple[str, ...]) -> tuple[int, int, int]:
    """Return how many teams are accused at high and at medium severity, and how many there are."""
    high = medium = total = 0
    for name in names:
        labels, truth = read_set(data_folder() / name)
        for size in SIZES:
            some = team(labels, truth, size)
            if some is None:
                continue
            worst = {finding.severity for finding in accusations(some)}
            high, medium = high + ("high" in worst), medium + (worst == {"medium"})
            total += 1
    return high, medium, total


def run(names: tuple[str, ...] = (*CHOSEN_ON, *JUDGED_ON), n_seeds: int = SEEDS) -> list[Row]:
    """Count planted copies and good teams."""
    named, high, total = planted(n_seeds)
    text = f"{named} of {total} ({named / total:.0%}), {high} at high"
    rows = [Row("planted copies named at medium or high", "≥ 85%", text, named >= 0.85 * total)]
    if data_folder() is None:
        return [*rows, Row("good small teams", "", "no data: set WISECROWD_DATA")]
    high, medium, total = teams(names)
    text = f"{high} of {total} at high, {medium} at medium only"
    return [*rows, Row("good teams of 4 and 6 accused of copying", "0 at high", text, high == 0)]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
