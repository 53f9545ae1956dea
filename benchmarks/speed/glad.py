"""GLAD on 10^5 labels: CPU time of a whole fit, kernels warm."""

from __future__ import annotations

import wisecrowd as wc
from benchmarks.rows import Row, cpu_seconds, random_crowd


def run(n_labels: int = 100_000) -> list[Row]:
    labels, truth = random_crowd(n_labels, 2, n_workers=500)
    model = wc.aggregation.GLAD()
    model.fit(labels)  # compiled
    seconds = cpu_seconds(lambda: wc.aggregation.GLAD().fit(labels))
    accuracy = float((model.labels_ == truth).mean())
    measured = f"{seconds:.2f} s ({model.n_iter_} iterations, accuracy {accuracy:.4f})"
    return [Row("GLAD, 10^5 labels", "≤ 2 s CPU", measured, seconds <= 2)]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
