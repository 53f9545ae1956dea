"""The line about every method that the documentation shows: simulated crowds, all defaults.

``python -m benchmarks.accuracy.method_rows`` measures all methods and writes
docs/benchmark_rows.json; names of methods after it measure those alone and leave the other lines as
they are. ``learning.auto`` is the learner, if an aggregator has the same name.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy import kind_rows
from wisecrowd import simulate
from wisecrowd.core.exceptions import WisecrowdError, WisecrowdWarning
from wisecrowd.core.registry import PACKAGES, get_method, method_names
from wisecrowd.metrics import accuracy, log_loss

ROWS = Path(__file__).parents[2] / "docs" / "benchmark_rows.json"
SEEDS = {"aggregation": 3, "learning": 2}
Score = dict[str, float]
Split = tuple[Any, simulate.SimulatedCrowd, Any, Any]


def careful_confused_spammers(seed: int) -> simulate.SimulatedCrowd:
    """500 tasks, 3 classes, 5 labels each: 25 careful workers, 15 who mix up pairs, 10 spammers."""
    workers = "25*one-coin:6,3 + 15*pairwise-flipper + 10*spammers"
    return simulate.crowd(500, workers, n_classes=3, random_state=seed)


def few_labels(seed: int) -> simulate.SimulatedCrowd:
    """1000 tasks, 2 classes, 3 labels each: 500 workers with 6 labels each."""
    workers = 500 * simulate.OneCoinWorkers(4, 2)
    return simulate.crowd(1000, workers, simulate.Regular(3, 6), n_classes=2, random_state=seed)


def copied_coin(seed: int) -> simulate.SimulatedCrowd:
    """1000 tasks, 2 classes, 8 labels each: 10 good workers, a coin, and 5 workers who copy it."""
    workers = 10 * simulate.OneCoinWorkers(8, 3) + 1 * simulate.Spammers()
    workers = workers + 5 * simulate.Copiers(0.95, sources=10)
    return simulate.crowd(1000, workers, simulate.PerTask(8), n_classes=2, random_state=seed)


def many_classes(seed: int) -> simulate.SimulatedCrowd:
    """1000 tasks, 20 classes, 4 labels each: 40 workers of different accuracy."""
    workers = 40 * simulate.OneCoinWorkers(4, 3)
    return simulate.crowd(1000, workers, simulate.PerTask(4), n_classes=20, random_state=seed)


def digits_three_labels(seed: int) -> Split:
    """1200 digits, 3 labels each by 12 mediocre workers and 8 spammers."""
    workers = 12 * simulate.OneCoinWorkers(4, 3) + 8 * simulate.Spammers()
    return split_digits(seed, workers, simulate.PerTask(3))


def digits_one_label(seed: int) -> Split:
    """1200 digits, one label each by 5 workers who are right half the time and confuse pairs."""
    return split_digits(seed, 5 * simulate.PairwiseFlippers(0.5), simulate.PerTask(1))


def parity_copied_coin(seed: int) -> Split:
    """1200 digits, even or odd, all labelled by a good worker, a coin, and 99 who copy it."""
    good = simulate.FixedConfusion([[0.9, 0.1], [0.1, 0.9]])
    workers = 1 * good + 1 * simulate.Spammers() + 99 * simulate.Copiers(1.0, sources=1)
    return split_digits(seed, workers, simulate.Dense(), parity=True)


def split_digits(seed: int, workers: Any, graph: Any, parity: bool = False) -> Split:
    """Return features, their crowd, and features and classes of digits that nobody labelled."""
    from sklearn.datasets import load_digits

    X, truth = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    X, truth = X[order], truth[order] % 2 if parity else truth[order]
    crowd = simulate.crowd(None, workers, graph, truth=truth[:1200], random_state=seed)
    return X[:1200], crowd, X[1200:], truth[1200:]


CROWDS: dict[str, dict[str, Callable[[int], Any]]] = {
    "aggregation": {
        "spammers": careful_confused_spammers,
        "few labels": few_labels,
        "copied coin": copied_coin,
        "many classes": many_classes,
    },
    "learning": {
        "three labels": digits_three_labels,
        "one label": digits_one_label,
        "copied coin": parity_copied_coin,
    },
}


def score_aggregator(name: str, make_crowd: Callable[[int], Any], seed: int) -> Score:
    crowd = make_crowd(seed)
    model = get_method(name)()
    start = time.process_time()
    model.fit(crowd.labels)
    return {
        "accuracy": accuracy(crowd.truth, model.labels_),
        "log_loss": log_loss(crowd.truth_codes, model.probas_),
        "seconds": time.process_time() - start,
    }


def score_learner(name: str, make_crowd: Callable[[int], Any], seed: int) -> Score:
    X, crowd, X_new, truth_new = make_crowd(seed)
    model = get_method(name, "learning")()
    start = time.process_time()
    model.fit(X, crowd.labels)
    seconds = time.process_time() - start
    codes = np.searchsorted(model.classes_, truth_new)
    return {
        "accuracy": accuracy(truth_new, model.predict(X_new)),
        "log_loss": log_loss(codes, model.predict_proba(X_new)),
        "seconds": seconds,
    }


def measure(name: str, kind: str) -> dict[str, dict[str, Any] | None]:
    """Return the mean scores of one method on each crowd; None where it refuses the crowd."""
    score = {"aggregation": score_aggregator, "learning": score_learner}[kind]
    row: dict[str, dict[str, Any] | None] = {}
    for crowd, make_crowd in CROWDS[kind].items():
        try:
            runs = [score(name, make_crowd, seed) for seed in range(SEEDS[kind])]
        except WisecrowdError:
            row[crowd] = None
            continue
        row[crowd] = {key: round(float(np.mean([run[key] for run in runs])), 4) for key in runs[0]}
        if kind == "learning":  # by seed, for the test that fits with defaults give these
            row[crowd]["accuracies"] = [round(run["accuracy"], 4) for run in runs]
    return row


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore", WisecrowdWarning)  # what a fit complains about is in its score
    kept = json.loads(ROWS.read_text()) if names and ROWS.exists() else {}
    result: dict[str, Any] = {}
    for kind in PACKAGES:
        rows = dict(kept.get(kind, {}).get("rows", {}))
        for name in method_names(kind):
            if not names or name in names or f"{kind}.{name}" in names:
                rows[name] = measure(name, kind)
                print(kind, name, line(rows[name]), flush=True)
        crowds = {crowd: (make.__doc__ or "").strip() for crowd, make in CROWDS[kind].items()}
        ordered = {name: rows[name] for name in method_names(kind) if name in rows}
        result[kind] = {"seeds": SEEDS[kind], "crowds": crowds, "rows": ordered}
    for kind in kind_rows.CROWDS:
        result[kind] = rows_of_kind(kind, dict(kept.get(kind, {}).get("rows", {})), names)
    text = json.dumps(result, indent=1)
    ROWS.write_text(f"{text}\n", encoding="utf-8")


def rows_of_kind(kind: str, rows: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Return the lines of the methods for another kind than classes; ``names`` are measured."""
    crowds, seeds = kind_rows.CROWDS[kind], range(kind_rows.SEEDS)
    for name in method_names(type=kind):
        if names and name not in names:
            continue
        rows[name] = {}
        for crowd in crowds:
            try:
                runs = [kind_rows.score_method(name, kind, crowd, seed) for seed in seeds]
            except WisecrowdError:
                rows[name][crowd] = None
                continue
            rows[name][crowd] = {
                key: round(float(np.mean([run[key] for run in runs])), 4) for key in runs[0]
            }
        print(kind, name, line(rows[name]), flush=True)
    return {
        "seeds": kind_rows.SEEDS,
        "score": kind_rows.SCORES[kind][0],
        "crowds": {crowd: (make.__doc__ or "").strip() for crowd, make in crowds.items()},
        "rows": {name: rows[name] for name in method_names(type=kind) if name in rows},
    }


def line(row: dict[str, dict[str, Any] | None]) -> str:
    return "  ".join(
        f"{crowd}: {'–' if score is None else ' '.join(_numbers(score))}"
        for crowd, score in row.items()
    )


def _numbers(score: dict[str, Any]) -> list[str]:
    return [f"{value:.3f}" for value in score.values() if isinstance(value, float)]


if __name__ == "__main__":
    main(sys.argv[1:])
