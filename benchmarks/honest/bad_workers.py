"""Bad workers planted in real crowds: how many are found, and how many good ones are named.

``python -m benchmarks.run bad_workers`` plants six workers of 40 labels each in every set, twice:
two answer uniformly, two by the shares of the crowd's labels, two always the same. A named original
worker is wrong if kappa between this worker and the truth is above .2. There are no times.
"""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy.real_data import data_folder, read_set
from benchmarks.rows import Row
from wisecrowd import CrowdLabels
from wisecrowd.audit import find_spammers

CHOSEN_ON = ("bluebird", "cf", "dog", "face", "labelme", "leaves9")
JUDGED_ON = ("rte", "sp_amt", "temp", "truthfulness_s6", "valence5", "zc_us")
N_PLANTED, N_LABELS, KNOWS = 6, 40, 0.2


def with_bad_workers(labels: CrowdLabels, seed: int) -> tuple[CrowdLabels, np.ndarray]:
    """Return the labels with six more workers, and who they are (n_workers,)."""
    rng = np.random.default_rng(seed)
    K, n = labels.n_classes, min(N_LABELS, labels.n_tasks)
    shares = np.bincount(labels.label, minlength=K) / labels.n_annotations
    task, worker, label = [labels.task], [labels.worker], [labels.label]
    for one in range(N_PLANTED):
        task.append(rng.permutation(labels.n_tasks)[:n])
        worker.append(np.full(n, labels.n_workers + one))
        label.append(
            rng.integers(0, K, n) if one < 2
            else rng.choice(K, n, p=shares) if one < 4
            else np.full(n, rng.integers(K))
        )  # fmt: skip
    made = CrowdLabels.from_arrays(*map(np.concatenate, (task, worker, label)), classes=range(K))
    return made, np.asarray(made.workers >= labels.n_workers)


def kappa_to_truth(labels: CrowdLabels, truth: np.ndarray) -> np.ndarray:
    """Return kappa (n_workers,) between labels and true codes (n_tasks,); -1: not known."""
    J, K = labels.n_workers, labels.n_classes
    rows = truth[labels.task] >= 0
    worker, label, true = labels.worker[rows], labels.label[rows], truth[labels.task[rows]]
    table = np.bincount((worker * K + label) * K + true, minlength=J * K * K).reshape(J, K, K)
    share = table / np.maximum(table.sum(axis=(1, 2), keepdims=True), 1)
    right = np.trace(share, axis1=1, axis2=2)
    chance = (share.sum(axis=1) * share.sum(axis=2)).sum(axis=1)
    return np.where(chance < 1, (right - chance) / np.maximum(1 - chance, 1e-9), 0.0)


def found_and_false(name: str, seeds: tuple[int, ...] = (0, 1)) -> dict[str, np.ndarray]:
    """Return found, false and all accusations of one set, by level."""
    labels, truth = read_set(data_folder() / name)
    totals = {"spammer": np.zeros(3, int), "knows_nothing": np.zeros(3, int)}
    for seed in seeds:
        made, planted = with_bad_workers(labels, seed)
        report = find_spammers(made, pruning=False)
        knows = ~planted & (kappa_to_truth(made, _codes(truth, labels)[made.tasks]) > KNOWS)
        for level, total in totals.items():
            named = getattr(report, level)
            total += [(named & planted).sum(), (named & knows).sum(), named.sum()]
    return totals


def _codes(truth: dict, labels: CrowdLabels) -> np.ndarray:
    """Return the true classes as codes (n_tasks,); -1: not known."""
    code = {value: k for k, value in enumerate(labels.classes.tolist())}
    return np.array([code.get(truth.get(task), -1) for task in labels.tasks.tolist()])


def run(names: tuple[str, ...] = (*CHOSEN_ON, *JUDGED_ON)) -> list[Row]:
    """Count over the sets; the bars are for all twelve."""
    if data_folder() is None:
        return [Row("bad workers planted in real crowds", "", "no data: set WISECROWD_DATA")]
    sums = {"spammer": np.zeros(3, int), "knows_nothing": np.zeros(3, int)}
    rows = []
    for name in names:
        totals = found_and_false(name)
        for level, total in totals.items():
            sums[level] += total
        rows.append(Row(f"bad workers in {name}", "", _text(totals["spammer"], 1)))
    found, false, _ = sums["spammer"]
    met = bool(found >= 120 and false <= 12) if len(names) == 12 else None
    text = _text(sums["spammer"], len(names))
    rows.append(Row("bad workers to look at, no times", "≥ 120 of 144; ≤ 12 false", text, met))
    text = _text(sums["knows_nothing"], len(names))
    return [*rows, Row("bad workers who know nothing, no times", "", text)]


def _text(total: np.ndarray, n_sets: int) -> str:
    found, false, named = total
    return f"{found} of {2 * N_PLANTED * n_sets} found, {false} false of {named} named"


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
