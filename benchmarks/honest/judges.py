"""Judges beside people: published figures, power of a person, and speed.

The alternative annotator test is compared with the published function on three sets of judges, and
the power of the test with that of a simulation of people.
"""

from __future__ import annotations

import csv
from collections import defaultdict

import numpy as np

import wisecrowd as wc
from benchmarks.accuracy.real_data import data_folder
from benchmarks.rows import Row, cpu_seconds
from wisecrowd.truth import judges

# Omega and rho by the function of Calderon et al. (2025), not clustered.
PUBLISHED = {
    ("judges_framing", 0.15): {
        "gemini_flash": (1.0, 0.8336), "gemini_pro": (1.0, 0.9062), "gpt-4o": (1.0, 0.9179),
        "llama-31": (0.5, 0.8015), "gpt-4o-mini": (1.0, 0.8724), "mistral-v03": (0.25, 0.7991),
    },
    ("judges_cebab_aspects", 0.1): {
        "gemini_flash": (0.7, 0.9135), "gemini_pro": (0.9, 0.9356), "gpt-4o": (0.9, 0.9277),
        "llama-31": (0.6, 0.8911), "gpt-4o-mini": (0.5, 0.8962), "mistral-v03": (0.1, 0.8110),
    },
    ("judges_mtbench", 0.2): {
        "gemini_flash": (0.0, 0.7189), "gemini_pro": (0.0, 0.7645), "gpt-4o": (0.0, 0.7728),
        "llama-31": (0.0, 0.6872), "gpt-4o-mini": (0.0, 0.7355), "mistral-v03": (0.0, 0.6832),
    },
}  # fmt: skip
POWER = {50: 0.41, 100: 0.69, 200: 0.93}  # of a person at epsilon .1, judges_framing
EFFECTIVE = {"judges_framing": 2.1, "judges_cebab_aspects": 1.6}


def published_rho(labels: wc.CrowdLabels, judge: str) -> tuple[float, list[int]]:
    """Return rho by plain loops over tasks and people, and the number of tasks of each person."""
    answers: dict[str, dict[str, int]] = defaultdict(dict)
    for task, worker, label in zip(labels.task, labels.worker, labels.label, strict=True):
        answers[str(labels.workers[worker])][str(labels.tasks[task])] = int(label)
    kinds = dict(zip(map(str, labels.workers), labels.worker_kind, strict=True))
    people = {who: said for who, said in answers.items() if kinds[who] == "human"}
    who_answered = defaultdict(list)
    for who, said in people.items():
        for task in said:
            who_answered[task].append(who)
    shares, sizes = [], []
    for who, said in people.items():
        near = []
        for task, own in said.items():
            others = [people[one][task] for one in who_answered[task] if one != who]
            if others and task in answers[judge]:
                agree = [np.mean([label == other for other in others])
                         for label in (answers[judge][task], own)]  # fmt: skip
                near.append(agree[0] >= agree[1])
        if len(near) >= 30:
            shares.append(np.mean(near))
            sizes.append(len(near))
    return float(np.mean(shares)), sizes


def published() -> list[Row]:
    """Return how far the test is from the published figures, and from plain loops."""
    folder, rows = data_folder(), []
    for (name, epsilon), figures in PUBLISHED.items():
        if folder is None or not (folder / name).is_dir():
            rows.append(Row(f"{name}: omega and rho", "", "no data: set WISECROWD_DATA"))
            continue
        labels = read_judges(folder / name / "answers.csv")
        found = judges(labels, epsilon=epsilon)
        table = {
            judge: (omega, rho)
            for judge, omega, rho in zip(
                *(found.columns[column] for column in ("judge", "omega", "rho")), strict=True
            )
        }
        same = sum(
            (table[judge][0], round(table[judge][1], 4)) == one for judge, one in figures.items()
        )
        what = f"{name}: judges with the published omega and rho"
        rows.append(Row(what, "all", f"{same} of {len(figures)}", same == len(figures)))
        off = max(abs(published_rho(labels, judge)[0] - table[judge][1]) for judge in figures)
        rows.append(Row(f"{name}: rho against plain loops", "≤ 1e-12", f"{off:.1e}", off <= 1e-12))
        if name in EFFECTIVE:
            value = float(found.tables["judge_effective"]["effective"][0])
            met = round(value, 1) == EFFECTIVE[name]
            rows.append(
                Row(f"{name}: 6 judges count as", str(EFFECTIVE[name]), f"{value:.2f}", met)
            )
        if name == "judges_framing":
            power = judges(labels, epsilon=0.1).tables["judge_power"]
            shown = dict(zip(power["n_tasks"].tolist(), power["power"].tolist(), strict=True))
            rows += [
                Row(f"{name}: power of a person, epsilon .1, {n} tasks", f"{expected} ± .05",
                    f"{shown[n]:.3f}", abs(shown[n] - expected) <= 0.05)
                for n, expected in POWER.items()
            ]  # fmt: skip
    return rows


def read_judges(path) -> wc.CrowdLabels:
    """Return a set of judges and people."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = ([row[name] for row in rows] for name in ("task", "worker", "label"))
    kinds = [row["worker_kind"] for row in rows]
    return wc.CrowdLabels.from_arrays(*columns, worker_kind=kinds)


def judged_crowd(n_labels: int, n_judges: int = 6, per_task: int = 4) -> wc.CrowdLabels:
    """Return judges who answer all tasks, and many people of whom four answer each."""
    rng = np.random.default_rng(0)
    n_tasks = n_labels // (n_judges + per_task)
    n_people = max(8, n_tasks // 500)
    truth = rng.integers(0, 3, n_tasks)
    first = rng.integers(0, n_people // per_task, (n_tasks, per_task))
    people = n_judges + first + n_people // per_task * np.arange(per_task)
    worker = np.hstack([np.tile(np.arange(n_judges), (n_tasks, 1)), people])
    right = rng.random(worker.shape) < np.where(worker < n_judges, 0.75, 0.8)
    label = np.where(right, truth[:, None], rng.integers(0, 3, worker.shape))
    task = np.repeat(np.arange(n_tasks, dtype=np.int32), n_judges + per_task)
    n_workers = int(worker.max()) + 1
    kinds = np.where(np.arange(n_workers) < n_judges, "model", "human").astype(object)
    return wc.CrowdLabels(
        task, worker.ravel().astype(np.int32), label.ravel().astype(np.int32), np.arange(n_tasks),
        np.arange(n_workers), np.array(["a", "b", "c"], dtype=object), worker_kind=kinds,
    )  # fmt: skip


def speed() -> list[Row]:
    """Return CPU seconds for many labels."""
    rows = []
    for n_labels, bar in ((100_000, 5), (1_000_000, 30)):
        labels = judged_crowd(n_labels)
        taken = cpu_seconds(lambda labels=labels: judges(labels))
        what = f"judges of {n_labels:,} labels, {labels.n_workers} workers"
        rows.append(Row(what, f"≤ {bar} CPU s", f"{taken:.1f}", taken <= bar))
    return rows


def run() -> list[Row]:
    return published() + speed()


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
