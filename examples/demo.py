"""The whole job on a simulated crowd: labels, worker quality, and what was gained.

Scikit-learn's handwritten digits give the true classes. Every digit is labelled
by five of forty workers: some are careful, some confuse similar digits or mean harm, and some do
not look at all.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from sklearn.datasets import load_digits

from wisecrowd import aggregation, metrics, simulate
from wisecrowd.storage import Manifest, atomic_write, write_manifest

OUTPUT = Path("demo-output")
SEED = 0


def write_table(name: str, header: list[str], rows: Iterable[Iterable[object]]) -> Path:
    """Write a csv table with its manifest, and return its path."""
    path = OUTPUT / name
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    write_manifest(path, Manifest.describe(method="dawid-skene", seed=SEED))
    return path


def main() -> None:
    """Simulate, aggregate, compare, write."""
    truth = load_digits().target
    workers = (
        12 * simulate.OneCoinWorkers(8, 2)
        + 20 * simulate.DiverseWorkers()
        + 8 * simulate.Spammers()
    )
    crowd = simulate.crowd(None, workers, simulate.PerTask(5), truth=truth, random_state=SEED)
    labels = crowd.labels
    print(
        f"{labels.n_annotations} labels by {labels.n_workers} workers "
        f"of {labels.n_tasks} handwritten digits"
    )

    vote = aggregation.MajorityVote().fit(labels)
    model = aggregation.DawidSkene().fit(labels)
    before = metrics.accuracy(truth, vote.labels_)
    after = metrics.accuracy(truth, model.labels_)
    print(f"  majority vote  {before:.1%} correct")
    print(f"  Dawid-Skene    {after:.1%} correct")
    wrong_before, wrong_after = 1 - before, 1 - after
    print(
        f"  gained         {after - before:+.1%}, {1 - wrong_after / wrong_before:.0%} fewer errors"
    )

    order = metrics.worker_rank_correlation(model.worker_accuracy_, crowd.worker_accuracy)
    print(f"  workers        estimated and true accuracy rank alike, correlation {order:.2f}")

    OUTPUT.mkdir(exist_ok=True)
    confidence = model.probas_.max(axis=1)
    written = [
        write_table(
            "labels.csv",
            ["task", "label", "confidence"],
            zip(model.tasks_, model.labels_, confidence.round(4), strict=True),
        ),
        write_table(
            "workers.csv",
            ["worker", "accuracy", "true_accuracy", "labels"],
            zip(
                model.workers_,
                model.worker_accuracy_.round(4),
                crowd.worker_accuracy.round(4),
                labels.labels_per_worker,
                strict=True,
            ),
        ),
    ]
    print("Results: " + ", ".join(str(path) for path in written))


if __name__ == "__main__":
    main()
