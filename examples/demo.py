"""The whole workflow on a simulated crowd: labels, worker quality, a classifier, and the gain.

Scikit-learn's handwritten digits give the true classes. Every digit is labelled by five of forty
workers. Some are careful, some confuse similar digits or are adversarial, and some label at random.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from sklearn.datasets import load_digits

from wisecrowd import aggregation, learning, metrics, report, simulate
from wisecrowd.io.tables import write_table
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.storage import Manifest, write_manifest

OUTPUT = Path("demo-output")
SEED = 0


def main() -> None:
    """Simulate, aggregate, train, print the gain, write the results and the report."""
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
    model = aggregation.Auto().fit(labels)
    before = metrics.accuracy(truth, vote.labels_)
    after = metrics.accuracy(truth, model.labels_)
    fewer = 1 - (1 - after) / (1 - before)
    print(f"  majority vote  {before:.1%} correct")
    print(f"  auto           {after:.1%} correct")
    print(f"  gained         {100 * (after - before):+.1f} points: {fewer:.0%} fewer wrong labels")
    likeness = metrics.worker_rank_correlation(model.worker_accuracy_, crowd.worker_accuracy)
    print(f"  reason         {model.reason_}")
    print(f"  workers        rank correlation of estimated and true accuracy: {likeness:.2f}")

    train(pixels, truth, labels)

    OUTPUT.mkdir(exist_ok=True)
    simulate.write(crowd, OUTPUT / "crowd")
    tables = {
        "labels.csv": model.task_columns() | {"truth": truth},
        "workers.csv": model.worker_columns() | {"true_accuracy": crowd.worker_accuracy},
    }
    manifest = Manifest.describe(
        method="auto",
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
    print(f"The crowd itself is in {OUTPUT / 'crowd'}; to compare all methods, run:")
    print(f"  {command} compare {OUTPUT}/crowd/answers.csv --truth {OUTPUT}/crowd/truth.csv")
    print(f"The report; open it with a double click: {page.resolve()}")


def train(pixels: Any, truth: Any, labels: CrowdLabels) -> None:
    """Train on the labels of two thirds of the digits, and score on the rest."""
    seen, new = slice(0, 1200), slice(1200, None)
    voted = learning.TwoStage(aggregator="majority-vote", labels="hard", epochs=30)
    together = learning.CCEM(epochs=30)
    print(f"A classifier trained on the labels of {seen.stop} digits, scored on unlabelled digits:")
    for name, method in (("on the majority vote", voted), ("on the raw labels", together)):
        method.fit(pixels[seen], labels[seen])
        print(f"  {name:<25} {method.score(pixels[new], truth[new]):.1%} correct")
    improved = metrics.accuracy(truth[seen], together.labels_)
    print(f"  the {seen.stop} digits themselves {improved:.1%} correct, from pixels and labels")


if __name__ == "__main__":
    main()
