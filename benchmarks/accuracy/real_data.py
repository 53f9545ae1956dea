"""Accuracy on real crowds, beside crowd-kit's methods of the same name.

Majority vote is scored with the expectation over tied classes, for both libraries: which of two
equal votes wins is a coin's business, and their rules differ.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import numpy as np

import wisecrowd as wc
from benchmarks.rows import Row
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.io.tables import read, read_truth

SETS = (
    "bluebird", "dog", "rte", "temp", "trec", "face", "product", "sp_amt", "cf", "zc_us", "leaves9",
    "music_genre", "sentiment_polarity", "labelme", "cifar10n",
)  # fmt: skip
NAMESAKES = {
    "majority-vote": "MajorityVote",
    "wawa": "Wawa",
    "zero-based-skill": "ZeroBasedSkill",
    "dawid-skene": "DawidSkene",
    "one-coin": "OneCoinDawidSkene",
    "glad": "GLAD",
    "mace": "MACE",
}
TOO_SLOW = {
    "GLAD": 5_000,
    "MACE": 100_000,
}  # labels beyond which crowd-kit's needs many minutes, and is left out
TARGETS = {"bluebird": 0.888, "dog": 0.840, "rte": 0.925}
WORSE = 0.005


def data_folder() -> Path | None:
    folder = Path(os.environ.get("WISECROWD_DATA", "../shared/data"))
    return folder if folder.is_dir() else None


def crowd_kit_accuracy(name: str, labels: wc.CrowdLabels, truth: dict) -> float | None:
    """Return the accuracy of crowd-kit's method, or None where it fails or takes too long."""
    if labels.n_annotations > TOO_SLOW.get(name, labels.n_annotations):
        return None
    import crowdkit.aggregation as theirs
    import pandas as pd

    frame = pd.DataFrame(labels.to_dict())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if name == "MajorityVote":
                shares = theirs.MajorityVote().fit_predict_proba(frame)
                shares = shares.reindex(index=labels.tasks, columns=labels.classes, fill_value=0)
                return tie_credit(shares.to_numpy(), labels, truth)
            predicted = getattr(theirs, name)().fit_predict(frame)
        except Exception:  # whatever it is, crowd-kit has no answer here
            return None
    known = [task for task in truth if task in predicted.index]
    return float(np.mean([predicted[task] == truth[task] for task in known]))


def tie_credit(probas: np.ndarray, labels: wc.CrowdLabels, truth: dict) -> float:
    """Return the expected accuracy when ties are broken at random."""
    rows = [i for i, task in enumerate(labels.tasks.tolist()) if task in truth]
    known = [truth[labels.tasks[i]] for i in rows]
    return wc.metrics.fractional_accuracy(known, probas[rows], classes=labels.classes)


def our_accuracy(method: str, labels: wc.CrowdLabels, truth: dict) -> float | None:
    """Return the accuracy of one of our methods, as it comes; None if it is for two classes."""
    make = get_method(method)
    if make().tags().binary and labels.n_classes > 2:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(labels)
    if method == "majority-vote":
        return tie_credit(model.probas_, labels, truth)
    return model.score(labels, truth)


def read_set(folder: Path) -> tuple[wc.CrowdLabels, dict]:
    """Return the labels of a data set, and the truth of the tasks that have labels."""
    labels = read(folder / "answers.csv")
    known = read_truth(folder / "truth.csv")
    pairs = zip(known["task"].to_pylist(), known["label"].to_pylist(), strict=True)
    tasks = set(labels.tasks.tolist())
    return labels, {task: label for task, label in pairs if task in tasks}


def table(names: list[str]) -> tuple[list[str], list[Row]]:
    """Return the lines of a markdown table, one per method, and the rows that judge it."""
    folder = data_folder()
    if folder is None:
        return [], [Row("accuracy on real data", "", "no data: set WISECROWD_DATA")]
    lines = {name: f"| {name} |" for name in names}
    worse, compared, rows = [], 0, []
    for name in SETS:
        labels, truth = read_set(folder / name)
        for method in names:
            print(f"... {name} {method}", file=sys.stderr, flush=True)
            ours = our_accuracy(method, labels, truth)
            cell = " – " if ours is None else f" {ours:.3f} "
            if method in NAMESAKES:
                theirs = crowd_kit_accuracy(NAMESAKES[method], labels, truth)
                cell += "(–) " if theirs is None else f"({theirs:.3f}) "
                if theirs is not None:
                    compared += 1
                    if ours < theirs - WORSE:
                        worse.append(f"{method} on {name} {ours:.3f} against {theirs:.3f}")
            if method == "dawid-skene" and name in TARGETS:
                bar = TARGETS[name]
                rows.append(Row(f"Dawid-Skene on {name}", f"≥ {bar}", f"{ours:.4f}", ours >= bar))
            lines[method] += cell + "|"
    what = f"worse than the crowd-kit namesake by over 0.5 points, of {compared} pairs"
    rows.append(Row(what, "none", "; ".join(worse) or "none", not worse))
    head = ["| method | " + " | ".join(SETS) + " |", "|---" * (len(SETS) + 1) + "|"]
    return head + list(lines.values()), rows


def run() -> list[Row]:
    lines, rows = table(method_names())
    print("\nAccuracy on real crowds (crowd-kit's in brackets)\n")
    print("\n".join(lines) + "\n")
    return rows


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
