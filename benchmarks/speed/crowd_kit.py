"""Dawid-Skene beside crowd-kit's, in one process: 10^6 labels, one thread, processor time.

The first rows compare 10 iterations of both. The next rows compare a whole fit with the defaults,
from arrays in random order to convergence, with 20 iterations of crowd-kit's. The last rows compare
accelerated with plain EM, and show how much processor time other threads use, such as those of
BLAS; they mean something only if OMP_NUM_THREADS is not set.
"""

from __future__ import annotations

import time

import numpy as np

import wisecrowd as wc
from benchmarks.rows import Row, cpu_seconds, random_crowd
from wisecrowd.aggregation import DawidSkene
from wisecrowd.kinds.classes.container import CrowdLabels

BARS = {2: 25, 10: 35}
CONVERGED_BAR = 40
MOST_ELSEWHERE = 0.01  # share of the processor time outside the thread that fits


def run(n_labels: int = 1_000_000) -> list[Row]:
    wc.set_threads(1)
    try:
        rows = [row for n_classes in BARS for row in _against_crowd_kit(n_labels, n_classes)]
        return rows + [_acceleration(n_labels, n_classes) for n_classes in (2, 4, 10)]
    finally:
        wc.set_threads(None)


def _against_crowd_kit(n_labels: int, n_classes: int) -> list[Row]:
    import pandas as pd
    from crowdkit.aggregation import DawidSkene as TheirDawidSkene

    labels, truth = random_crowd(n_labels, n_classes)
    shuffled = np.random.default_rng(1).permutation(n_labels)
    arrays = tuple(codes[shuffled] for codes in (labels.task, labels.worker, labels.label))
    frame = pd.DataFrame({"task": labels.task, "worker": labels.worker, "label": labels.label})

    def ours() -> DawidSkene:
        return DawidSkene(max_iter=10, tol=0.0, accelerate=False).fit(labels)

    def converged() -> DawidSkene:
        return DawidSkene().fit(arrays)

    short, whole = ours(), converged()  # compiled
    mine, to_convergence = cpu_seconds(ours, 3), cpu_seconds(converged, 5)
    ten = cpu_seconds(lambda: TheirDawidSkene(n_iter=10, tol=0.0).fit(frame))
    twenty = cpu_seconds(lambda: TheirDawidSkene(n_iter=20, tol=0.0).fit(frame))
    accuracy = [float(np.mean(model.labels_ == truth)) for model in (short, whole)]
    return [
        Row(
            f"Dawid-Skene, 10 iterations, 10^6 labels, K = {n_classes}, against crowd-kit",
            f"≥ {BARS[n_classes]}×",
            f"{ten / mine:.0f}× ({mine:.2f} against {ten:.1f} s; accuracy {accuracy[0]:.4f})",
            ten / mine >= BARS[n_classes],
        ),
        Row(
            f"Dawid-Skene with its defaults, from arrays to convergence, 10^6 labels, "
            f"K = {n_classes}, against 20 iterations of crowd-kit",
            f"≥ {CONVERGED_BAR}×",
            f"{twenty / to_convergence:.0f}× ({to_convergence:.2f} against {twenty:.1f} s; "
            f"{whole.n_iter_} passes; accuracy {accuracy[1]:.4f})",
            twenty / to_convergence >= CONVERGED_BAR,
        ),
    ]


def _acceleration(n_labels: int, n_classes: int) -> Row:
    """Return a row that compares accelerated and plain EM, fits alternating."""
    labels, _ = random_crowd(n_labels, n_classes)
    models = {True: DawidSkene(), False: DawidSkene(accelerate=False)}
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(4):
        for accelerate, model in models.items():
            seconds[accelerate].append(cpu_seconds(lambda fitted=model: fitted.fit(labels)))
    text = "; ".join(
        f"{name} {min(seconds[accelerate]):.2f} s, {models[accelerate].n_iter_} passes, "
        f"objective {models[accelerate].history_[-1]:.1f}"
        for accelerate, name in ((True, "accelerated"), (False, "plain"))
    )
    gap = models[True].history_[-1] - models[False].history_[-1]
    elsewhere = _elsewhere(labels)
    return Row(
        f"Dawid-Skene accelerated and plain, 10^6 labels, K = {n_classes}",
        f"objective not lower; other threads ≤ {MOST_ELSEWHERE:.0%} of the time",
        f"{text}; other threads {elsewhere:.1%}",
        gap >= -1e-9 * abs(models[False].history_[-1]) and elsewhere <= MOST_ELSEWHERE,
    )


def _elsewhere(labels: CrowdLabels) -> float:
    """Return the share of the processor time of fits that other threads used."""
    here, everywhere = time.thread_time(), time.process_time()
    for _ in range(5):
        DawidSkene().fit(labels)
    everywhere = time.process_time() - everywhere
    return 1 - (time.thread_time() - here) / everywhere


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
