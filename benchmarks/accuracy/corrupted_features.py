"""Features that are wrong for some tasks while the workers are right: alarms, and ``robust``.

A share of the rows of X is replaced by rows of other tasks, by zeros, or by huge numbers. Workers
have labelled the true tasks, and the test features are in order.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from benchmarks.accuracy.feature_sets import balance_of, load, names
from benchmarks.rows import Row
from wisecrowd.learning import CrowdKernel

SHARES = {"shuffled": (0.0, 0.05, 0.1, 0.2), "zero": (0.1, 0.2), "huge": (0.1, 0.2)}
ALARMS = ("odd-features", "mismatched-features")


def corrupted(X: np.ndarray, share: float, kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features with a share of the rows replaced, and which rows these are."""
    rng = np.random.default_rng(seed)
    X, bad = X.copy(), rng.permutation(len(X))[: round(share * len(X))]
    if kind == "shuffled":
        X[bad] = X[rng.permutation(len(X))[: len(bad)]]
    else:
        noise = 1e4 * np.abs(X).max() * rng.normal(size=(len(bad), X.shape[1]))
        X[bad] = 0.0 if kind == "zero" else noise
    which = np.zeros(len(X), dtype=bool)
    which[bad] = True
    return X, which


def measured(name: str, kind: str, share: float, seed: int) -> dict[str, float]:
    """Return test accuracies with and without ``robust``, and whether and what is found."""
    data = load(name, seed)
    X, bad = corrupted(data.X, share, kind, seed)
    plain, robust = (
        CrowdKernel(robust=robust, **balance_of(name)).fit(X, data.labels, tasks=data.labels.tasks)
        for robust in (False, True)
    )
    tasks = data.labels.tasks[~bad]
    clean = CrowdKernel(**balance_of(name)).fit(data.X[~bad], data.labels[~bad], tasks=tasks)
    named = [task for one in plain.findings_ if one.id in ALARMS for task in one.affected]
    found = np.isin(data.labels.tasks, named)
    return {
        "clean": clean.score(data.X_test, data.y_test),
        "plain": plain.score(data.X_test, data.y_test),
        "robust": robust.score(data.X_test, data.y_test),
        "alarm": float(found.any()),
        "recall": float(found[bad].mean()) if bad.any() else np.nan,
        "precision": float(bad[found].mean()) if found.any() else np.nan,
    }


def rows_of(name: str, kind: str, share: float, n_seeds: int) -> list[Row]:
    runs = [measured(name, kind, share, seed) for seed in range(n_seeds)]
    mean = {key: np.array([run[key] for run in runs]) for key in runs[0]}
    plain, robust = mean["plain"].mean(), mean["robust"].mean()
    what = f"{name}, {share:.0%} of the rows {kind}, {n_seeds} seeds"
    accuracy = f"{plain:.3f} → {robust:.3f}; without these tasks {mean['clean'].mean():.3f}"
    alarms = f"{int(mean['alarm'].sum())} of {n_seeds}"
    if share == 0:
        return [
            Row(f"{what}: test accuracy, robust=True", "not worse by .002", accuracy,
                robust >= plain - 0.002),
            Row(f"{what}: false alarms", "0", alarms, mean["alarm"].sum() == 0),
        ]  # fmt: skip
    bar, met = ("better", robust > plain) if share >= 0.1 else ("", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no task was named in any run
        recall, precision = np.nanmean(mean["recall"]), np.nanmean(mean["precision"])
    named = f"{alarms}; recall {recall:.2f}, precision {precision:.2f}"
    return [
        Row(f"{what}: test accuracy, robust=True", bar, accuracy, met),
        Row(f"{what}: alarms", "", named),
    ]


def run(n_seeds: int = 4, *sets: str) -> list[Row]:
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in sets or names():
            for kind, shares in SHARES.items():
                for share in shares:
                    rows += rows_of(name, kind, share, n_seeds)
                    print(*(row.line() for row in rows[-2:]), sep="\n", file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    print("\n".join(row.line() for row in run(n_seeds, *sys.argv[2:])))
