"""How much of a fit is spent outside the kernels: checks, accuracies, labels, copies.

``python -m benchmarks.speed.outside_kernels`` prints the rows: Dawid-Skene, ten iterations on 10^6
labels, one thread, processor time, the median of seven profiled fits.
"""

from __future__ import annotations

import cProfile
import pstats
import time
import warnings
from statistics import median

import wisecrowd as wc
from benchmarks.rows import Row, random_crowd
from wisecrowd.engines.threads import set_threads
from wisecrowd.kinds.classes.container import CrowdLabels

MOST = 0.35
# Name in the row → function whose time, with all that it calls, is shown.
PARTS = {
    "checks": "_findings",
    "worker accuracies": "accuracy_fitted",
    "labels and attributes": "_publish",
    "blocks": "cut",
}


def profile(labels: CrowdLabels) -> dict[str, float]:
    """Return seconds of one fit: total, in kernels, and of each part."""
    profiler = cProfile.Profile(time.process_time)
    model = wc.aggregation.DawidSkene(max_iter=10, tol=0)
    profiler.runcall(model.fit, labels)
    found = dict.fromkeys(("total", "kernels", *PARTS), 0.0)
    names = {function: part for part, function in PARTS.items()}
    for (file, _, function), (_, _, own, with_calls, _) in pstats.Stats(profiler).stats.items():  # type: ignore[attr-defined]
        found["total"] += own
        if "wisecrowd/kernels/" in file:
            found["kernels"] += own
        elif "/wisecrowd/" in file and function in names:
            found[names[function]] += with_calls
    return found


def row(n_classes: int, n_labels: int = 1_000_000, n_fits: int = 7) -> Row:
    labels, _ = random_crowd(n_labels, n_classes)
    profile(labels)  # compiles
    runs = [profile(labels) for _ in range(n_fits)]
    share = median(1 - run["kernels"] / run["total"] for run in runs)
    parts = ", ".join(
        f"{name} {median(run[name] / run['total'] for run in runs):.0%}" for name in PARTS
    )
    return Row(
        f"time outside kernels, 10 iterations of Dawid-Skene on {n_labels:.0e} labels, "
        f"{n_classes} classes",
        f"≤ {MOST:.0%}", f"{share:.0%} ({parts})", share <= MOST,
    )  # fmt: skip


def run() -> list[Row]:
    set_threads(1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [row(2), row(4)]
    finally:
        set_threads(None)


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
