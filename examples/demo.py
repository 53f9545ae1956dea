"""The whole job on a simulated crowd: labels, worker quality, a classifier, and what was gained.

Scikit-learn's handwritten digits give the true classes. Every digit is labelled by five of forty
workers: some are careful, some confuse similar digits or mean harm, and some do not look at all.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from sklearn.datasets import load_digits

from wisecrowd import aggregation, learning, metrics, report, simulate
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.io.tables import write_table
from wisecrowd.storage import Manifest, write_manifest

OUTPUT = Path("demo-output")
SEED = 0


def main() -> None:
    """Simulate, aggregate, train, say what was gained, write, report."""
    pixels, truth = load_digits(return_X_y=True)
    careful, varied = simulate.OneCoinWorkers(8, 2), simulate.DiverseWorkers()
    workers = 12 * careful + 20 * varied + 8 * simulate.Spammers()
    crowd = simulate.crowd(None, workers, simulate.PerTask(5), truth=truth, random_state=SEED)
    labels = crowd.labels
    print(
        f"{labels.n_annotations} labels by {labels.n_workers} workers "
        f"of {labels.n_tasks} handwritten digits"
    )

    vote = aggregation.MajorityVote().fit(labels)
    model = aggregation.DawidSkene(random_state=SEED).fit(labels)
    before = metrics.accuracy(truth, vote.labels_)
    after = metrics.accuracy(truth, model.labels_)
    fewer = 1 - (1 - after) / (1 - before)
    print(f"  majority vote  {before:.1%} correct")
    print(f"  Dawid-Skene    {after:.1%} correct")
    print(f"  gained         {100 * (after - before):+.1f} points: {fewer:.0%} fewer wrong labels")
    likeness = metrics.worker_rank_correlation(model.worker_accuracy_, crowd.worker_accuracy)
    print(f"  workers        estimated and true accuracy rank alike, correlation {likeness:.2f}")

    train(pixels, truth, labels)

    OUTPUT.mkdir(exist_ok=True)
    simulate.write(crowd, OUTPUT / "crowd")
    tables = {
        "labels.csv": model.task_columns() | {"truth": truth},
        "workers.csv": model.worker_columns() | {"true_accuracy": crowd.worker_accuracy},
    }
    manifest = Manifest.describe(
        method="dawid-skene",
        parameters=model.get_params(),
        seed=SEED,
        inputs=[OUTPUT / "crowd" / "answers.csv"],
    )
    for name, table in tables.items():
        write_table(OUTPUT / name, table)
        write_manifest(OUTPUT / name, manifest)
    print("Results:", ", ".join(str(OUTPUT / name) for name in tables))
    page = OUTPUT / "report.html"
    answers = str(OUTPUT / "crowd" / "answers.csv")
    report(labels, page, fit=model, truth=truth, title="The demo's crowd", files=[answers])
    command = os.path.relpath(Path(sys.executable).with_name("wisecrowd"))
    print(f"The crowd itself is in {OUTPUT / 'crowd'}; all methods beside each other:")
    print(f"  {command} compare {OUTPUT}/crowd/answers.csv --truth {OUTPUT}/crowd/truth.csv")
    print(f"A report to look at, by double click: {page.resolve()}")


def train(pixels: Any, truth: Any, labels: CrowdLabels) -> None:
    """Train on the labels of two thirds of the digits, and score on the others."""
    seen, new = slice(0, 1200), slice(1200, None)
    voted = learning.TwoStage(aggregator="majority-vote", labels="hard", epochs=30)
    together = learning.CCEM(epochs=30)
    print(f"A classifier for digits that nobody labelled, from the labels of {seen.stop}:")
    for name, method in (("on the majority's labels", voted), ("on the raw labels", together)):
        method.fit(pixels[seen], labels[seen])
        print(f"  {name:<25} {method.score(pixels[new], truth[new]):.1%} correct")
    improved = metrics.accuracy(truth[seen], together.labels_)
    print(f"  the {seen.stop} themselves       {improved:.1%} correct, from pixels and labels")


if __name__ == "__main__":
    main()
