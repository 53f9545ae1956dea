"""Copiers behind one source: found, honest workers not accused, and labels after the remedy.

``python -m benchmarks.accuracy.copies`` prints the table. The crowds and seeds are not those with
which thresholds were chosen. Of the real sets, only those that were looked at are listed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

import wisecrowd as wc
from benchmarks.accuracy.real_data import data_folder, read_set
from benchmarks.rows import Row
from wisecrowd import simulate
from wisecrowd.audit import clean, find_clones, find_dependent_groups

N_SEEDS = 20
FIRST_SEED = 9000
CLASSES = (2, 3, 4)
COPIERS = ((1,), (2,), (3,), (4,), (3, 3))
LOOKED_AT = (
    "bluebird", "compas_dressel_race", "face", "leaves9", "product", "sentiment_polarity", "temp",
    "valence5",
)  # fmt: skip


def copied_crowd(
    seed: int, copiers: tuple[int, ...], n_classes: int, p: float = 0.97
) -> tuple[wc.CrowdLabels, np.ndarray, np.ndarray]:
    """Return labels, truth and the group of each worker (-1: none).

    36 honest workers are right in 70 to 85%; five label each of 520 tasks, about 72 each. The first
    ones have copiers, who label the tasks of their source, p of them as the source did.
    """
    rng = np.random.default_rng(seed)
    K, accuracy = n_classes, rng.uniform(0.7, 0.85, 36)
    confusion = (1 - accuracy)[:, None, None] * (1 - np.eye(K)) / (K - 1)
    confusion = confusion + accuracy[:, None, None] * np.eye(K)
    people = sum(
        (1 * simulate.FixedConfusion(one) for one in confusion[1:]),
        1 * simulate.FixedConfusion(confusion[0]),
    )
    made = simulate.crowd(520, people, simulate.PerTask(5), n_classes=K, random_state=seed)
    task, worker, label = [made.labels.task], [made.labels.worker], [made.labels.label]
    group = np.full(36 + sum(copiers), -1)
    for source in range(len(copiers)):
        rows = np.flatnonzero(made.labels.worker == source)
        group[source] = source
        for copier in range(36 + sum(copiers[:source]), 36 + sum(copiers[: source + 1])):
            truth = made.truth_codes[made.labels.task[rows]]
            own = np.where(rng.random(len(rows)) < 0.7, truth, rng.integers(0, K, len(rows)))
            copy = rng.random(len(rows)) < p
            task.append(made.labels.task[rows])
            worker.append(np.full(len(rows), copier))
            label.append(np.where(copy, made.labels.label[rows], own))
            group[copier] = source
    labels = wc.CrowdLabels.from_arrays(*map(np.concatenate, (task, worker, label)))
    return labels, made.truth_codes, group


def on_tasks(labels: wc.CrowdLabels, truth: np.ndarray, tasks: np.ndarray) -> tuple[float, float]:
    """Return accuracy and mean confidence of the default method on some tasks."""
    table = wc.aggregate(labels)
    task, label, confidence = (table[name].to_numpy() for name in ("task", "label", "confidence"))
    place = np.isin(task, tasks)
    right = label[place] == truth[task[place]]
    return float(right.mean()), float(confidence[place].mean())


def copiers_found(n_seeds: int = N_SEEDS) -> Iterator[Row]:
    for copiers in COPIERS:
        found = copying = false = 0
        shared, figures = [], []
        for seed in range(n_seeds):
            K = CLASSES[seed % len(CLASSES)]
            labels, truth, group = copied_crowd(FIRST_SEED + seed, copiers, K)
            accused = find_clones(labels).group
            first, second = np.triu_indices(len(group), 1)
            same = (group[first] >= 0) & (group[first] == group[second])
            linked = (accused[first] >= 0) & (accused[first] == accused[second])
            found, copying = found + (same & linked).sum(), copying + same.sum()
            false += (linked & ~same).sum()
            sources = np.arange(len(copiers))
            shared += np.bincount(labels.worker)[sources].tolist()
            tasks = np.unique(labels.task[np.isin(labels.worker, sources)])
            honest = labels.select_annotations(labels.worker < 36)
            after = clean(labels, ["clones"]).labels
            figures.append([
                *on_tasks(labels, truth, tasks), *on_tasks(after, truth, tasks),
                *on_tasks(honest, truth, tasks),
            ])  # fmt: skip
        before, sure, kept, confidence, oracle, oracle_sure = np.mean(figures, axis=0)
        what = f"{' and '.join(map(str, copiers))} copiers behind one source each"
        text = f"{found} of {copying}, {false} honest pairs; {min(shared)} to {max(shared)} tasks"
        met = bool(found >= 0.9 * copying and false <= 0.05 * (found + false))
        yield Row(f"{what}, {n_seeds} crowds: pairs", "≥ 90%; ≤ 5% honest", text, met)
        text = (
            f"accuracy {before:.3f} (confidence {sure:.3f}) → {kept:.3f} ({confidence:.3f}); "
            f"honest only {oracle:.3f} ({oracle_sure:.3f})"
        )
        bar = "≥ honest only − .01; confidence within .03"
        met = bool(kept >= oracle - 0.01 and abs(confidence - kept) <= 0.03)
        yield Row(f"{what}: after `--prune clones`", bar, text, met)


def crowds_without_copies(seed: int) -> dict[str, simulate.SimulatedCrowd]:
    made, coin = simulate.crowd, simulate.OneCoinWorkers
    five, dense = simulate.PerTask(5), simulate.Dense()
    hard = simulate.BetaDifficulty(1, 2)
    return {
        "workers of 75%": made(500, 30 * coin(6, 2), five, random_state=seed),
        "experts among others": made(
            500, 15 * coin(3, 2) + 6 * coin(50, 1), five, n_classes=3, random_state=seed
        ),
        "experts and spammers": made(
            250, 8 * coin(20, 1) + 7 * simulate.Spammers(), five, n_classes=3, random_state=seed
        ),
        "varying difficulty": made(
            400, 25 * coin(8, 2), simulate.PerTask(8), difficulty=hard, random_state=seed
        ),
        "skewed classes": made(500, 30 * coin(8, 2), five, class_prior=[0.9, 0.1],
                               random_state=seed),
        "eight models on all tasks": made(
            400, 8 * coin(17, 3), dense, n_classes=4, difficulty=hard, random_state=seed
        ),
    }  # fmt: skip


def nobody_accused(n_seeds: int = 10) -> list[Row]:
    accused: dict[str, int] = {}
    for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
        for name, made in crowds_without_copies(seed).items():
            group = find_dependent_groups(made.labels).group
            accused[name] = accused.get(name, 0) + int((group >= 0).any())
    return [
        Row(f"no copies: {name}, {n_seeds} crowds", "≤ 1 with anybody accused", str(n), n <= 1)
        for name, n in accused.items()
    ]


def real_sets() -> list[Row]:
    if data_folder() is None:
        return [Row("copies in real data", "", "no data: set WISECROWD_DATA")]
    rows = []
    for name in LOOKED_AT:
        labels, _ = read_set(data_folder() / name)
        size = find_dependent_groups(labels).size
        text = f"groups of {size.tolist()} of {labels.n_workers} workers" if len(size) else "nobody"
        rows.append(Row(f"accused in {name}", "", text))
    return rows


def run() -> list[Row]:
    print("... copies", file=sys.stderr, flush=True)
    return [*copiers_found(), *nobody_accused(), *real_sets()]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
