"""Dawid-Skene beside crowd-kit's, in one process: 10 iterations on 10^6 labels, one thread."""

from __future__ import annotations

import numpy as np

import wisecrowd as wc
from benchmarks.rows import Row, cpu_seconds, random_crowd

BARS = {2: 25, 10: 35}


def run(n_labels: int = 1_000_000) -> list[Row]:
    import pandas as pd
    from crowdkit.aggregation import DawidSkene as TheirDawidSkene

    wc.set_threads(1)
    rows = []
    for n_classes, bar in BARS.items():
        labels, truth = random_crowd(n_labels, n_classes)
        frame = pd.DataFrame({"task": labels.task, "worker": labels.worker, "label": labels.label})

        def ours(x=labels):
            return wc.aggregation.DawidSkene(max_iter=10, tol=0.0, accelerate=False).fit(x)

        def theirs(f=frame):
            return TheirDawidSkene(n_iter=10, tol=0.0).fit(f)

        model = ours()  # compiled
        mine, crowd_kit = cpu_seconds(ours, 3), cpu_seconds(theirs)
        ratio = crowd_kit / mine
        accuracy = float(np.mean(model.labels_ == truth))
        rows.append(
            Row(
                f"Dawid-Skene, 10 iterations, 10^6 labels, K = {n_classes}, against crowd-kit",
                f"≥ {bar}×",
                f"{ratio:.0f}× ({mine:.2f} against {crowd_kit:.1f} s; accuracy {accuracy:.4f})",
                ratio >= bar,
            )
        )
    wc.set_threads(None)
    return rows


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
