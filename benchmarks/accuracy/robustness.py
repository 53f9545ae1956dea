"""Attacked tasks, clusters of workers, and workers who change over time, on simulated crowds."""

from __future__ import annotations

import numpy as np

import wisecrowd as wc
from benchmarks.rows import Row
from wisecrowd.aggregation import DawidSkene, DriftingDawidSkene, MeanField, WorkerClusters
from wisecrowd.core.part import NotApplicable
from wisecrowd.kinds.classes.audit.attacked_tasks import find_attacked_tasks

SEEDS = range(5)
Codes = np.ndarray


# --------------------------------------------------------------------------------- attacked tasks


def attacked_crowd(
    seed: int, members: int, observed: float = 0.3
) -> tuple[wc.CrowdLabels, Codes, Codes]:
    """2000 tasks, 60 workers, 3 classes; members lie together on 15 % of the tasks."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=2000)
    hit, target = rng.random(2000) < 0.15, (truth + rng.integers(1, 3, 2000)) % 3
    task, worker = np.nonzero(rng.random((2000, 60)) < observed)
    right = rng.random(len(task)) < rng.uniform(0.6, 0.9, 60)[worker]
    label = np.where(right, truth[task], (truth[task] + rng.integers(1, 3, len(task))) % 3)
    lies = (worker < members) & hit[task]
    label[lies] = target[task][lies]
    ids = {"tasks": range(2000), "workers": range(60)}
    return wc.CrowdLabels.from_arrays(task, worker, label, **ids), truth, hit


def area_under_curve(positive: Codes, score: np.ndarray) -> float:
    gap = score[positive][:, None] - score[~positive]
    return float(np.mean(gap > 0) + np.mean(gap == 0) / 2)


def attacks() -> list[Row]:
    area, named, wrongly, clean, thin = [], [], [], 0, 0
    for seed in SEEDS:
        labels, _, hit = attacked_crowd(seed, 12)
        found = find_attacked_tasks(labels)
        area.append(area_under_curve(hit, found.attacked))
        named.append(int((found.member[:12] > 0.5).sum()))
        wrongly.append(int((found.member[12:] > 0.5).sum()))
        clean += len(find_attacked_tasks(attacked_crowd(seed, 0)[0]).findings())
        try:
            sparse = find_attacked_tasks(attacked_crowd(seed, 12, 0.1)[0])
            thin += all(finding.severity == "low" for finding in sparse.findings())
        except NotApplicable:
            thin += 1
    what = "attacked tasks, 18 labels per task, 12 of 60 workers, 5 seeds"
    return [
        Row(f"{what}: area under the curve", ">= .85", f"{min(area):.3f} to {max(area):.3f}",
            min(area) >= 0.85),
        Row(f"{what}: members named of 12, others", "12, 0", f"{min(named)}, {max(wrongly)}",
            min(named) == 12 and not max(wrongly)),
        Row("five clean crowds: findings", "0", str(clean), clean == 0),
        Row("6 labels per task: says that it cannot know", "5 of 5", f"{thin} of 5",
            thin == 5),
    ]  # fmt: skip


# ------------------------------------------------------------------------------- worker clusters


def crowd_of_types(seed: int, per_worker: int) -> tuple[wc.CrowdLabels, Codes]:
    """1000 tasks, 6 labels each, by good (.4), random, shifting and one-class workers (.2 each)."""
    rng = np.random.default_rng(seed)
    n_workers = 6000 // per_worker
    truth, types = rng.integers(3, size=1000), rng.choice(4, n_workers, p=(0.4, 0.2, 0.2, 0.2))
    flat = np.full((3, 3), 0.1)
    law = np.array([
        flat + 0.7 * np.eye(3),
        np.full((3, 3), 1 / 3),
        flat + 0.7 * np.roll(np.eye(3), 1, axis=1),
        np.tile([0.9, 0.05, 0.05], (3, 1)),
    ])  # fmt: skip
    task = np.repeat(np.arange(1000), 6)
    worker = np.argsort(rng.random((1000, n_workers)), axis=1)[:, :6].ravel()
    cut = law[types[worker], truth[task]].cumsum(axis=1)
    label = (rng.random(6000)[:, None] > cut).sum(axis=1)
    return wc.CrowdLabels.from_arrays(task, worker, label, tasks=range(1000)), truth


def clusters() -> list[Row]:
    rows = []
    for per_worker, least in ((120, 0.0), (25, 0.08), (8, 0.0)):
        scores = []
        for seed in SEEDS:
            labels, truth = crowd_of_types(seed, per_worker)
            models = (MeanField(), WorkerClusters())
            scores.append([np.mean(model.fit(labels).labels_ == truth) for model in models])
        alone, shared = np.mean(scores, axis=0)
        rows.append(
            Row(f"worker clusters, {per_worker} labels per worker: accuracy, 5 seeds",
                f">= mean field + {least:.2f}", f"{alone:.3f} -> {shared:.3f}",
                bool(shared >= alone + least))
        )  # fmt: skip
    return rows


# ------------------------------------------------------------------------------------------ drift


def changing_crowd(seed: int, kind: str) -> tuple[wc.CrowdLabels, Codes]:
    """3000 tasks, 40 workers, 3 classes, 6 labels per task."""
    rng = np.random.default_rng(seed)
    truth, task = rng.integers(3, size=3000), np.repeat(np.arange(3000), 6)
    worker = np.argsort(rng.random((3000, 40)), axis=1)[:, :6].ravel()
    right = rng.uniform(0.5, 0.9, 40)[worker]
    if kind == "drop":
        right[(worker < 20) & (task > 1500)] = 1 / 3
    if kind == "slow":
        right = np.clip(right + 0.25 * np.sin(2 * np.pi * task / 3000 + worker), 0.2, 0.97)
    wrong = (truth[task] + rng.integers(1, 3, len(task))) % 3
    label = np.where(rng.random(len(task)) < right, truth[task], wrong)
    time = task + rng.random(len(task))
    return wc.CrowdLabels.from_arrays(task, worker, label, timestamp=time), truth


def drift() -> list[Row]:
    rows = []
    names = {"drop": "half the workers drop to chance", "slow": "slow change", "none": "no drift"}
    for kind, least in (("drop", 0.01), ("slow", 0.0), ("none", -0.002)):
        scores = []
        for seed in SEEDS:
            labels, truth = changing_crowd(seed, kind)
            models = (DawidSkene(), DriftingDawidSkene())
            scores.append([np.mean(model.fit(labels).labels_ == truth) for model in models])
        static, follows = np.mean(scores, axis=0)
        rows.append(
            Row(f"drift, {names[kind]}: accuracy, 5 seeds", f">= static {least:+.3f}",
                f"{static:.4f} -> {follows:.4f}", bool(follows >= static + least))
        )  # fmt: skip
    return rows


def run() -> list[Row]:
    return [*attacks(), *clusters(), *drift()]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
