"""Gaps between groups of tasks: the judgements of Dressel and Farid, and simulated bias."""

from __future__ import annotations

import numpy as np

import wisecrowd as wc
from benchmarks.accuracy.real_data import data_folder
from benchmarks.rows import Row
from wisecrowd.core.registry import get_method
from wisecrowd.fairness import by_group, decide, fair_shares, vote_scores

METHODS = ("majority-vote", "one-coin", "dawid-skene", "glad", "auto")
EPSILONS = (1.0, 0.15, 0.1, 0.05, 0.02)
Table = tuple[wc.CrowdLabels, np.ndarray, np.ndarray]


def compas() -> Table | None:
    """Return labels, truth and race of the defendants; None for races other than two."""
    folder = data_folder()
    if folder is None or not (folder / "compas_dressel_race").is_dir():
        return None
    place = folder / "compas_dressel_race"
    answers, truth = (
        np.loadtxt(place / name, int, delimiter=",", skiprows=1)
        for name in ("answers.csv", "truth.csv")
    )
    race = np.genfromtxt(place / "task_attributes.csv", delimiter=",", names=True)["race"]
    names = np.array([{1: "white", 2: "black"}.get(int(one)) for one in race], dtype=object)
    return wc.CrowdLabels.from_arrays(*answers.T), truth[:, 1], names


def single_workers(labels: wc.CrowdLabels, truth: np.ndarray, race: np.ndarray) -> Row:
    """The mean worker, of those with 10 labels of each group."""
    right, gaps = [], []
    indptr, order = labels.by_worker
    for j in range(labels.n_workers):
        rows = order[indptr[j] : indptr[j + 1]]
        said, task = labels.label[rows], labels.task[rows]
        right.append(np.mean(said == truth[task]))
        of = [said[race[task] == name] for name in ("black", "white")]
        if min(map(len, of)) >= 10:
            gaps.append(of[0].mean() - of[1].mean())
    text = f"{np.mean(right):.3f}, {np.mean(gaps):+.3f} (sd {np.std(gaps):.3f})"
    return Row("compas, single workers: accuracy, parity gap", "", text)


def real() -> list[Row]:
    data = compas()
    if data is None:
        return [Row("compas_dressel_race", "", "no data")]
    labels, truth, race = data
    rows = [single_workers(*data)]
    best = 0.0
    for name in (*METHODS, "group-confusion"):
        options = {"task_group": race} if name == "group-confusion" else {}
        model = get_method(name)(**options).fit(labels)
        found = by_group(truth, model.labels_, race, n_replicates=0)
        right = float(np.mean(model.labels_ == truth))
        best = max(best, right)
        gaps = [found.differences[f"{one}_difference"][0] for one in
                ("demographic_parity", "equal_opportunity", "false_positive_rate")]  # fmt: skip
        text = f"{right:.3f}, " + ", ".join(f"{gap:.3f}" for gap in gaps)
        rows.append(Row(f"compas, {name}: accuracy; gaps of parity, TPR, FPR", "", text))
    rows.append(Row("compas, best accuracy of a method", ">= .66", f"{best:.3f}", best >= 0.66))
    for name in ("majority-vote", "dawid-skene"):
        scores = vote_scores(labels, get_method(name)().fit(labels))
        free = None
        for epsilon in EPSILONS:
            found = decide(scores, race, epsilon=epsilon)
            right = float(np.mean(found.labels == truth))
            free = right if free is None else free
            rows.append(
                Row(f"compas, {name} votes, parity within {epsilon:g}: accuracy, gap",
                    "<= .02 below" if epsilon < 1 else "", f"{right:.3f}, {found.gap:.3f}",
                    bool(right >= free - 0.02) if epsilon < 1 else None)
            )  # fmt: skip
    plan = fair_shares(labels, truth, race, epsilon=0.05)
    text = "; ".join(
        f"{what} {figures['accuracy']:.3f}, FPR gap {figures['false_positive_gap']:+.3f}"
        for what, figures in (
            ("planned", plan.planned), ("held out", plan.held_out), ("equal shares", plan.equal))
    )  # fmt: skip
    return [*rows, Row("compas, fair shares within .05: accuracy of a label", "", text)]


def biased_crowd(seed: int, where: str) -> Table:
    """2000 tasks, 40 workers, 10 labels; group 1 is accused .2 too often, or looks guilty."""
    rng = np.random.default_rng(seed)
    truth, group = rng.integers(2, size=(2, 2000))
    task = np.repeat(np.arange(2000), 10)
    worker = np.argsort(rng.random((2000, 40)), axis=1)[:, :10].ravel()
    hit, alarm = rng.uniform(0.65, 0.9, 40), rng.uniform(0.1, 0.3, 40)
    innocent = (truth == 0) & (group == 1)
    seen = np.where(innocent & (rng.random(2000) < 0.25) & (where == "tasks"), 1, truth)
    p = np.where(seen[task] == 1, hit[worker], alarm[worker])
    if where == "workers":
        p = np.where(innocent[task], p + 0.2, p)
    label = (rng.random(len(task)) < p).astype(int)
    return wc.CrowdLabels.from_arrays(task, worker, label), truth, group


def simulated() -> list[Row]:
    shares, told = [], 0
    for seed in range(5):
        labels, truth, group = biased_crowd(seed, "workers")
        model = wc.aggregation.GroupConfusion(task_group=group).fit(labels)
        innocent = truth[labels.task] == 0
        rates = [labels.label[innocent & (group[labels.task] == one)].mean() for one in (0, 1)]
        fitted = (model.group_confusion_[-1] - model.group_confusion_[0])[:, 0, 1].mean()
        shares.append(float(fitted / (rates[1] - rates[0])))
        labels, truth, group = biased_crowd(seed, "tasks")
        shared = wc.aggregation.GroupConfusion(task_group=group).fit(labels)
        told += shared.group_strength_ == np.inf and any(
            one.id == "shared-bias" for one in shared.findings_
        )
    return [
        Row("simulated bias of workers: share of the gap that group-confusion recovers, 5 seeds",
            ">= .90", f"{min(shares):.3f} to {max(shares):.3f}", min(shares) >= 0.9),
        Row("simulated bias of tasks: said to be invisible", "5 of 5", f"{told} of 5", told == 5),
    ]  # fmt: skip


def run() -> list[Row]:
    return [*real(), *simulated()]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
