"""Crowds of judges and people, and the alternative annotator test as plain loops."""

from __future__ import annotations

import csv
from collections import defaultdict

import numpy as np
from scipy.stats import ttest_1samp

import wisecrowd as wc


def agreement(answer, others):
    """Share of the others who gave this answer."""
    return float(np.mean([answer == other for other in others]))


def nearness(answer, others):
    """Minus the root mean squared distance from the others."""
    return -float(np.sqrt(np.mean([(answer - other) ** 2 for other in others])))


def significant(p, rate=0.05):
    """Numbers of the tests that Benjamini and Yekutieli reject."""
    order = sorted(range(len(p)), key=lambda n: p[n])
    harmonic = sum(1 / k for k in range(1, len(p) + 1))
    last = -1
    for place, n in enumerate(order):
        if p[n] <= (place + 1) / len(p) * rate / harmonic:
            last = place
    return set(order[: last + 1])


def plain_test(judge, people, epsilon, score=agreement, fewest=30):
    """Return omega, rho, score of judge and people, and p by person; dictionaries by task."""
    who = defaultdict(list)
    for person, answers in people.items():
        for task in answers:
            who[task].append(person)
    usable = {task for task in who if len(who[task]) >= 2 and task in judge}
    p, rho, ours, theirs = {}, [], [], []
    for person, answers in people.items():
        tasks = [task for task in answers if task in usable]
        if len(tasks) < fewest:
            continue
        d, near, own, other = [], [], [], []
        for task in tasks:
            rest = [people[one][task] for one in who[task] if one != person]
            a, b = score(answers[task], rest), score(judge[task], rest)
            d.append(int(a >= b) - int(b >= a))
            near.append(b >= a)
            own.append(a)
            other.append(b)
        constant = len(set(d)) == 1
        p[person] = float(d[0] >= epsilon) if constant else ttest_1samp(
            d, epsilon, alternative="less").pvalue  # fmt: skip
        rho.append(np.mean(near))
        ours.append(np.mean(other))
        theirs.append(np.mean(own))
    beaten = significant(list(p.values()))
    return len(beaten) / len(p), np.mean(rho), np.mean(ours), np.mean(theirs), p


def judged_crowd(
    seed=0, n_tasks=150, n_people=5, share=0.7, accuracy=0.8, judges=(0.8, 0.5), n_classes=3
):
    """Return rows (task, worker, class code, kind) of people and judges; not all answer all."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_tasks)
    rows = []
    for kind, rates in (("human", [accuracy] * n_people), ("model", judges)):
        for n, rate in enumerate(rates):
            for task in range(n_tasks):
                if rng.random() < (share if kind == "human" else 0.95):
                    right = rng.random() < rate
                    label = truth[task] if right else rng.integers(0, n_classes)
                    rows.append((f"t{task}", f"{kind}{n}", int(label), kind))
    return rows, {f"t{n}": int(k) for n, k in enumerate(truth)}


def by_worker(rows):
    """Return the answers of people and of models by worker and task."""
    found = {"human": defaultdict(dict), "model": defaultdict(dict)}
    for task, worker, label, kind in rows:
        found[kind][worker][task] = label
    return found["human"], found["model"]


def as_classes(rows, **options):
    """Return the rows as labels, with classes a, b, ..."""
    task, worker, label, kind = zip(*rows, strict=True)
    names = [chr(97 + code) for code in label]
    return wc.CrowdLabels.from_arrays(task, worker, names, worker_kind=kind, **options)


def as_numbers(rows):
    """Return the rows as numbers."""
    task, worker, label, kind = zip(*rows, strict=True)
    return wc.CrowdNumbers.from_arrays(task, worker, np.array(label) * 1.0, worker_kind=kind)


def read_rows(path):
    """Return the rows of a published set."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            (row["task"], row["worker"], row["label"], row["worker_kind"])
            for row in csv.DictReader(file)
        ]
