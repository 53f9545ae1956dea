"""The note that ordinal-latent suits grades better than the default."""

from __future__ import annotations

import numpy as np

from wisecrowd import CrowdLabels, simulate
from wisecrowd.cli import ordered_advice
from wisecrowd.cli.ordered_advice import better_than_thresholds


def judges(biases=(1.0, 0.0, 0.3)):
    """Return rows of grades 1 to 5 by three judges, and the true grades."""
    rng = np.random.default_rng(0)
    truth = rng.integers(1, 6, 120)
    task, worker = np.divmod(np.arange(360), 3)
    seen = truth[task] + np.array(biases)[worker] + rng.normal(0, (0.5, 0.6, 1.3), (120, 3)).ravel()
    return task, worker, np.clip(np.rint(seen), 1, 5).astype(int), truth


def test_biased_judges_are_a_case_for_the_latent_model(monkeypatch):
    labels = CrowdLabels.from_arrays(*judges()[:3], classes=range(1, 6), type="ordered")
    assert "ordinal-latent" in better_than_thresholds(labels)
    monkeypatch.setattr(ordered_advice, "MOST_LABELS", 300)
    assert better_than_thresholds(labels) is None


def test_errors_without_an_order_are_not():
    made = simulate.crowd(
        100, 8 * simulate.OneCoinWorkers(7, 3), simulate.PerTask(4), n_classes=4, random_state=1
    )
    rows = made.labels.to_dict()
    labels = CrowdLabels.from_arrays(
        *(rows[c] for c in ("task", "worker", "label")), type="ordered"
    )
    assert better_than_thresholds(labels) is None


def test_few_labels_and_two_classes_get_no_advice():
    task, worker, label, _ = judges()
    few = CrowdLabels.from_arrays(task[:60], worker[:60], label[:60], type="ordered")
    assert better_than_thresholds(few) is None
    two = CrowdLabels.from_arrays(task, worker, (label > 2).astype(int), type="ordered")
    assert better_than_thresholds(two) is None


def test_the_command_counts_gold_and_advises_unless_a_method_is_named(cli, tmp_path):
    task, worker, label, truth = judges()
    rows = [f"{t},{w},{y}" for t, w, y in zip(task, worker, label, strict=True)]
    answers, gold = tmp_path / "answers.csv", tmp_path / "gold.csv"
    answers.write_text("\n".join(["task,worker,label", *rows]) + "\n")
    known = [f"{t},{y}" for t, y in enumerate(truth[:20])]
    gold.write_text("\n".join(["task,label", *known]) + "\n")
    command = ["aggregate", answers, "--scale", "1..5", "--gold", gold, "-o", tmp_path / "o.csv"]
    code, _, errors = cli(*command)
    assert code == 0, errors
    assert "20 gold tasks used" in errors
    assert "try -m ordinal-latent" in errors
    _, _, errors = cli(*command, "-m", "thresholds", "-p", "method=majority-vote")
    assert "20 gold tasks used" in errors
    assert "try -m" not in errors
