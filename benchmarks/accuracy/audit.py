"""Spammers: published prunings, clean crowds, a sweep over their share, and the extreme ones."""

from __future__ import annotations

import sys

import numpy as np

import wisecrowd as wc
from benchmarks.accuracy.real_data import data_folder, read_set
from benchmarks.rows import Row
from wisecrowd import simulate
from wisecrowd.audit import find_spammers, prune

EXTREME = {"temp": (442, 452, 462), "rte": (540, 700, 760, 800)}
N_SEEDS = 3


def accuracies(labels: wc.CrowdLabels, truth: dict) -> tuple[float, float]:
    """Return the accuracy of majority vote and Dawid-Skene."""
    vote, fit = wc.aggregation.MajorityVote().fit(labels), wc.aggregation.DawidSkene().fit(labels)
    return vote.score(labels, truth), fit.score(labels, truth)


def bluebird(folder) -> list[Row]:
    labels, truth = read_set(folder / "bluebird")
    pruned = prune(labels)
    before, after = accuracies(labels, truth), accuracies(pruned.labels, truth)
    n = len(pruned.removed)
    return [
        Row("bluebird, workers pruned", "", f"{n} of {labels.n_workers}; published 22"),
        Row("bluebird, majority vote", ".759 → higher; published .852",
            f"{before[0]:.3f} → {after[0]:.3f}",
            round(before[0], 3) == 0.759 and after[0] > before[0]),
        Row("bluebird, Dawid-Skene", ".88 → .899, within a task",
            f"{before[1]:.4f} → {after[1]:.4f}", after[1] >= 0.899 - 1 / labels.n_tasks),
    ]  # fmt: skip


def dog(folder) -> list[Row]:
    labels, truth = read_set(folder / "dog")
    pruned = prune(labels)
    vote, fit = accuracies(pruned.labels, truth)
    return [
        Row("dog after pruning, Dawid-Skene", "within a point of .834",
            f"{fit:.4f}, vote {vote:.4f}, {len(pruned.removed)} pruned", abs(fit - 0.834) <= 0.01)
    ]  # fmt: skip


def extreme(folder) -> list[Row]:
    rows = []
    for name, volumes in EXTREME.items():
        labels, _ = read_set(folder / name)
        report = find_spammers(labels)
        found = sorted(report.n_labels[report.accused].tolist())
        what, bar = f"extreme spammers of {name}, by their tasks", ", ".join(map(str, volumes))
        rows.append(Row(what, bar, ", ".join(map(str, found)), set(volumes) <= set(found)))
    return rows


def honest(n_workers: int, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Confusion matrices of workers who are right .5 (.65 of two classes) to .95 of the time."""
    accuracy = rng.uniform(0.65 if n_classes == 2 else 0.5, 0.95, n_workers)[:, None, None]
    eye = np.eye(n_classes)
    return accuracy * eye + (1 - accuracy) / (n_classes - 1) * (1 - eye)


def draw(confusion: np.ndarray, n_tasks: int, share: float, rng) -> wc.CrowdLabels:
    """Labels of these workers, each on a random share of the tasks."""
    J, K, _ = confusion.shape
    truth = rng.integers(0, K, n_tasks)
    task, worker = np.nonzero(rng.random((n_tasks, J)) < share)
    rows = confusion[worker, truth[task]].cumsum(axis=1)
    label = (rng.random((len(task), 1)) > rows).sum(axis=1).clip(0, K - 1)
    return wc.CrowdLabels.from_arrays(
        task, worker, label, tasks=np.arange(n_tasks), workers=np.arange(J), classes=np.arange(K)
    )


def clean() -> list[Row]:
    rows = []
    for n_tasks in (200, 1000, 5000):
        lost = crowds = 0
        for n_classes in (2, 4):
            for seed in range(5):
                rng = np.random.default_rng(seed)
                labels = draw(honest(30, n_classes, rng), n_tasks, 0.3, rng)
                lost += int(find_spammers(labels).accused.sum())
                crowds += 1
        what = f"clean crowds lose nobody: {n_tasks} tasks, 30 workers, 2 and 4 classes"
        rows.append(Row(what, "0 accused", f"{lost} of {30 * crowds}", lost == 0))
    return rows


def sweep() -> list[Row]:
    accused = missed = n_honest = n_spam = 0
    for n_spammers in range(0, 19, 2):
        for seed in range(N_SEEDS):
            print(f"... {n_spammers} spammers of 20, seed {seed}", file=sys.stderr, flush=True)
            rng = np.random.default_rng(seed)
            good = honest(20 - n_spammers, 4, rng)
            spam = simulate.Spammers(1.0).sample(n_spammers, 4, rng)
            # The first seed has every label, the others a third of them.
            labels = draw(np.concatenate([good, spam]), 10_000, 1.0 if seed == 0 else 0.3, rng)
            found = find_spammers(labels).accused
            accused += int(found[: len(good)].sum())
            missed += int((~found[len(good) :]).sum())
            n_honest, n_spam = n_honest + len(good), n_spam + n_spammers
    what = "0-90% spammers, N = 10⁴, M = 20, K = 4"
    return [
        Row(f"{what}: honest accused", "0", f"{accused} of {n_honest}", accused == 0),
        Row(f"{what}: spammers missed", "few", f"{missed} of {n_spam}", missed <= 0.05 * n_spam),
    ]


def run() -> list[Row]:
    folder = data_folder()
    if folder is None:
        rows = [Row("pruning real crowds", "", "no data: set WISECROWD_DATA")]
    else:
        rows = bluebird(folder) + dog(folder) + extreme(folder)
    return rows + clean() + sweep()


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
