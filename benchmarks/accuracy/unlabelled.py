"""Test accuracy with labels of some of the tasks, with and without the rows of the others."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np

from benchmarks.accuracy.feature_sets import balance_of, load, names
from benchmarks.rows import Row
from wisecrowd import CrowdLabels
from wisecrowd.learning import CrowdKernel, VirtualAdversarial

Make = Callable[[str, int], CrowdKernel | VirtualAdversarial]
METHODS: dict[str, Make] = {
    "CrowdKernel": lambda name, seed: CrowdKernel(random_state=seed, **balance_of(name)),
    "VirtualAdversarial": lambda name, seed: VirtualAdversarial(random_state=seed),
}
SHARES = (0.1, 0.3)


def partly(labels: CrowdLabels, share: float, seed: int) -> tuple[CrowdLabels, np.ndarray]:
    """Return the labels of a share of the tasks, and the row numbers of these tasks."""
    order = np.random.default_rng(100 + seed).permutation(labels.n_tasks)
    rows = np.sort(order[: round(share * labels.n_tasks)])
    kept = np.zeros(labels.n_tasks, dtype=bool)
    kept[rows] = True
    return labels.select_annotations(kept[labels.task]), rows


def measured(make: Make, name: str, share: float, seed: int) -> tuple[float, float]:
    """Return test accuracies of fits to the labelled rows alone, and to all rows."""
    data = load(name, seed)
    labels, rows = partly(data.labels, share, seed)
    own = labels[rows]
    alone = make(name, seed).fit(data.X[rows], own, tasks=own.tasks)
    whole = make(name, seed).fit(data.X, labels, tasks=labels.tasks)
    return alone.score(data.X_test, data.y_test), whole.score(data.X_test, data.y_test)


def run(n_seeds: int = 5, *sets: str) -> list[Row]:
    import torch

    torch.set_num_threads(1)
    rows, gains = [], []
    for method, make in METHODS.items():
        for name in sets or names():
            for share in SHARES:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    each = [measured(make, name, share, seed) for seed in range(n_seeds)]
                alone, whole = np.array(each).T
                gain = whole - alone
                error = gain.std(ddof=1) / np.sqrt(n_seeds) if n_seeds > 1 else np.nan
                what = f"{method}, {name}, {share:.0%} of the tasks labelled, {n_seeds} seeds"
                found = (
                    f"{alone.mean():.3f} → {whole.mean():.3f} ({gain.mean():+.3f} ± {error:.3f})"
                )
                rows.append(Row(f"{what}: test accuracy with unlabelled rows", "", found))
                print(rows[-1].line(), file=sys.stderr, flush=True)
                gains.append((method, gain.mean()))
        mean = float(np.mean([gain for one, gain in gains if one == method]))
        what = f"{method}: mean gain of test accuracy by unlabelled rows"
        rows.append(Row(what, "> 0", f"{mean:+.3f}", mean > 0))
    return rows


if __name__ == "__main__":
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print("\n".join(row.line() for row in run(n_seeds, *sys.argv[2:])))
