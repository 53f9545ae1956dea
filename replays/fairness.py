"""Fairness on the judgements of defendants by Dressel and Farid: classifiers, and single workers.

The tutorial compares classifiers of recidivism that learn from aggregated labels with ones that
learn from single annotators. It does not state what a single annotator's classifier is, nor how the
data are split. Here there are two readings of it: one random label per task, and the mean over
workers of a classifier that learns from the tasks of one worker only. Gaps are black minus white.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

import wisecrowd as wc
from replays.feature_free import finish, plot
from replays.material import Job, crowd_set, folder, quiet

DATA = "compas_dressel_race"
BLACK, WHITE = 2, 1
LEAST = 5  # labels of a worker behind each rate of a gap
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
AGGREGATED = ("majority vote", "Dawid-Skene", "learning from crowds")
SINGLE = ("one random label", "one worker")
# Gains over single annotators in the tutorial: points of accuracy, and parity.
PUBLISHED = {
    "forest": ((6.04, 7.63, 7.54), (0.06, 0.04, 0.04)),
    "logistic": ((2.55, 2.77, 2.86), (0.04, 0.05, 0.05)),
}
# What other code measured on these data, with another rule for ties of the vote: accuracy, parity.
EXPECTED = {
    "truth": {"forest": (0.625, 0.176), "logistic": (0.671, 0.249)},
    "one random label": {"forest": (0.629, 0.153), "logistic": (0.667, 0.203)},
    "majority vote": {"forest": (0.649, 0.173), "logistic": (0.655, 0.185)},
    "Dawid-Skene": {"forest": (0.647, 0.169), "logistic": (0.656, 0.192)},
}
# The same of single workers (mean), vote, one coin and Dawid-Skene.
EXPECTED_WORKERS = {
    "accuracy": (0.623, 0.665, 0.666, 0.665),
    "parity gap": (0.174, 0.198, 0.207, 0.214),
    "false positive gap": (0.140, 0.138, 0.134, 0.155),
}


def race_of(part: str = "") -> np.ndarray:
    """Return the code of race of each defendant with labels, or of the test."""
    place = folder(DATA) / f"task_attributes{part}.csv"
    return np.genfromtxt(place, delimiter=",", names=True)["race"].astype(int)


def gap(said: np.ndarray, race: np.ndarray) -> float:
    return float(np.mean(said[race == BLACK]) - np.mean(said[race == WHITE]))


def models(seed: int) -> dict[str, Any]:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return {
        "forest": RandomForestClassifier(100, random_state=seed),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    }


def lessons(seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield what classifiers learn from: its name, the rows and their classes."""
    X, labels, truth, _, _ = crowd_set(DATA)
    every = np.arange(len(X))
    first = np.full(len(X), -1)
    order = np.random.default_rng(seed).permutation(labels.n_annotations)
    first[labels.task[order]] = labels.label[order]
    yield "truth", every, truth
    yield "one random label", every, first
    yield "majority vote", every, quiet(wc.aggregation.MajorityVote(), labels).labels_
    yield "Dawid-Skene", every, quiet(wc.aggregation.DawidSkene(), labels).labels_
    yield "one coin", every, quiet(wc.aggregation.OneCoin(), labels).labels_
    yield "learning from crowds", every, quiet(wc.learning.Raykar(), X, labels).labels_
    for rows in of_workers(labels):
        if len(np.unique(labels.label[rows])) > 1:
            yield "one worker", labels.task[rows], labels.label[rows]


def of_workers(labels: wc.CrowdLabels) -> Iterator[np.ndarray]:
    """Yield the rows of each worker's labels."""
    indptr, order = labels.by_worker
    for j in range(labels.n_workers):
        yield order[indptr[j] : indptr[j + 1]]


def trained(seed: int) -> dict[str, float]:
    """Return accuracy and parity gap on the test, by lesson and classifier."""
    X, _, _, X_test, z_test = crowd_set(DATA)
    race = race_of("_test")
    found: dict[str, list[float]] = {}
    for name, rows, given in lessons(seed):
        for kind, model in models(seed).items():
            said = quiet(model, X[rows], given).predict(X_test)
            found.setdefault(f"{name}|{kind}|accuracy", []).append(float(np.mean(said == z_test)))
            found.setdefault(f"{name}|{kind}|parity", []).append(gap(said, race))
    return {key: float(np.mean(values)) for key, values in found.items()}


def table(job: Job) -> None:
    """Classifiers that learn from the truth, from aggregated labels and from single ones."""
    runs = [job.once(lambda seed=seed: trained(seed), seed) for seed in job.seeds]
    mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
    kinds = list(PUBLISHED)
    lines = [
        "| learns from | " + " | ".join(f"{kind}: accuracy, parity" for kind in kinds) + " |",
        "|---" * (len(kinds) + 1) + "|",
    ]
    for name in dict.fromkeys(key.split("|")[0] for key in mean):
        cells = []
        for kind in kinds:
            ours = [mean[f"{name}|{kind}|{what}"] for what in ("accuracy", "parity")]
            wanted = EXPECTED.get(name, {}).get(kind)
            other = "" if wanted is None else f" (expected {wanted[0]:.3f}, {wanted[1]:+.3f})"
            cells.append(f"{ours[0]:.3f}, {ours[1]:+.3f}{other}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "Gains of " + ", ".join(AGGREGATED) + ": points of accuracy; parity", ""]
    for kind in kinds:
        points, parity = PUBLISHED[kind]
        lines.append(f"- {kind}, published: {_shown(points, parity)}")
        for reference in SINGLE:
            gains = [
                [mean[f"{one}|{kind}|{what}"] - mean[f"{reference}|{kind}|{what}"]
                 for one in AGGREGATED]
                for what in ("accuracy", "parity")
            ]  # fmt: skip
            ours = _shown([100 * one for one in gains[0]], gains[1])
            lines.append(f"- {kind}, ours over {reference}: {ours}")
    lines += ["", f"{len(runs)} seeds, 6214 test defendants; parity is black minus white."]
    finish("fairness table: classifiers of recidivism", lines, mean)


def _shown(points: Any, parity: Any) -> str:
    shown = " ".join(f"{one:+.2f}" for one in points)
    return f"{shown}; " + " ".join(f"{one:+.3f}" for one in parity)


def by_worker() -> dict[str, np.ndarray]:
    """Return accuracy, rates and gaps of each worker; NaN where labels of a race are too few."""
    _, labels, truth, _, _ = crowd_set(DATA)
    race = race_of()
    rows_of = []
    for rows in of_workers(labels):
        said, task = labels.label[rows], labels.task[rows]
        innocent, groups = truth[task] == 0, race[task]
        enough = min(np.sum(groups == one) for one in (BLACK, WHITE)) >= LEAST
        counts = [np.sum(innocent & (groups == one)) for one in (BLACK, WHITE)]
        rows_of.append((
            np.mean(said == truth[task]),
            np.mean(said[innocent]) if innocent.any() else np.nan,
            gap(said, groups) if enough else np.nan,
            gap(said[innocent], groups[innocent]) if min(counts) >= LEAST else np.nan,
        ))  # fmt: skip
    names = ("accuracy", "false positive rate", "parity gap", "false positive gap")
    return dict(zip(names, np.array(rows_of).T, strict=True))


def workers(job: Job) -> None:
    """Accuracy, false positive rate and parity by worker, beside those of aggregated labels."""
    _, labels, truth, _, _ = crowd_set(DATA)
    race, found = race_of(), by_worker()
    innocent = truth == 0
    fits = {
        "majority vote": wc.aggregation.MajorityVote(),
        "one coin": wc.aggregation.OneCoin(),
        "Dawid-Skene": wc.aggregation.DawidSkene(),
    }
    said = {name: quiet(method, labels).labels_ for name, method in fits.items()}
    heads = [f"{q:.0%} of workers" for q in QUANTILES]
    lines = ["| figure | " + " | ".join([*heads, "mean (sd), workers", *said]) + " |"]
    lines.append("|---" * (len(heads) + len(said) + 2) + "|")
    curves = {}
    for name, values in found.items():
        known = values[np.isfinite(values)]
        curves[name] = np.quantile(known, QUANTILES).tolist()
        fitted = [
            {"accuracy": np.mean(one == truth), "false positive rate": np.mean(one[innocent]),
             "parity gap": gap(one, race), "false positive gap": gap(one[innocent], race[innocent])
             }[name]
            for one in said.values()
        ]  # fmt: skip
        cells = [*curves[name], *fitted]
        shown = [f"{cell:.3f}" for cell in cells]
        shown.insert(len(heads), f"{known.mean():.3f} ({known.std():.3f}), {len(known)}")
        for place, wanted in enumerate(EXPECTED_WORKERS.get(name, ())):
            shown[len(heads) + place] += f"; expected {wanted:.3f}"
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    higher = float(np.mean(found["accuracy"] < np.mean(said["Dawid-Skene"] == truth)))
    lines += ["", f"{higher:.0%} of workers are less accurate than Dawid-Skene."]
    finish("fairness workers: the judgements of defendants", lines, curves)
    plot("fairness workers: quantiles", [f"{q:.0%}" for q in QUANTILES], curves, "value")


EXPERIMENTS = {"table": (table, 5), "workers": (workers, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiment", choices=[*EXPERIMENTS, "all"])
    parser.add_argument("--seeds", type=int, help="how many seeds to average")
    parser.add_argument("--resume", action="store_true", help="keep what was measured before")
    options = parser.parse_args()
    for name, (run, n_seeds) in EXPERIMENTS.items():
        if options.experiment in (name, "all"):
            seeds = range(options.seeds or n_seeds)
            run(Job(f"fairness-{name}", seeds, resume=options.resume).begin())


if __name__ == "__main__":
    main()
