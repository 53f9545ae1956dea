"""Honest probabilities of pairs: photographs of birds, and what caution costs on simulations.

``python -m benchmarks.run honest_same`` prints every row; about a minute of CPU time.
"""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy.real_data import data_folder
from benchmarks.accuracy.spans import calibration_error
from benchmarks.rows import Row
from wisecrowd.aggregation import CrowdClustering
from wisecrowd.io.tables import read, read_frame
from wisecrowd.kinds.same.answers import known_clusters
from wisecrowd.kinds.same.container import CrowdSame
from wisecrowd.kinds.same.scorer import cluster_scores
from wisecrowd.simulate import same_votes

LEAST = 1e-6  # smallest probability in a log loss
DEGREES = (20, 50)


def run() -> list[Row]:
    return [*birds(), *caution()]


def birds() -> list[Row]:
    """Return rows of the pairs of 342 photographs that 300 workers voted on."""
    folder = data_folder() / "birds5_pairs"
    data = read(folder / "answers.csv", type="same")
    table = read_frame(folder / "truth.csv")
    known = dict(zip(table["item"].to_pylist(), table["cluster"].to_pylist(), strict=True))
    truth = known_clusters(known, data.items)
    model = CrowdClustering().fit(data)
    (old_loss, old_error), (loss, error) = pair_scores(model, data, truth)
    kept = " / ".join(f"{x:.3f}" for x in cluster_scores(truth, model.cluster_).values())
    what = "birds5_pairs, crowd-clustering, pairs with votes"
    return [
        Row(f"{what}: log loss", "≤ 0.40", f"{loss:.3f} (of the model {old_loss:.3f})",
            loss <= 0.40),
        Row(f"{what}: calibration error of the claim", "≤ 0.04",
            f"{error:.3f} (of the model {old_error:.3f}; accuracy / ARI of items {kept})",
            error <= 0.04),
    ]  # fmt: skip


def pair_scores(
    model: CrowdClustering, data: CrowdSame, truth: np.ndarray
) -> list[tuple[float, float]]:
    """Return log loss and calibration error of pairs, of the model and as published."""
    left, right = np.unique(np.stack([data.left, data.right], axis=1), axis=0).T
    same, found = truth[left] == truth[right], []
    for q in (model.model_probas_, model.item_probas_):
        p = np.clip((q[left] * q[right]).sum(axis=1), LEAST, 1 - LEAST)
        claimed = np.where(p >= 0.5, p, 1 - p)
        loss = -np.log(np.where(same, p, 1 - p)).mean()
        found.append((float(loss), calibration_error(claimed, (p >= 0.5) == same)))
    return found


def caution(
    degrees: tuple[int, ...] = DEGREES, n_items: int = 200, seeds: tuple[int, ...] = (0, 1, 2)
) -> list[Row]:
    """Return what caution costs where votes are independent."""
    rows = []
    for degree in degrees:
        found = []
        for seed in seeds:
            made = same_votes(n_items, 60, n_items * degree // 2, 5, random_state=seed)
            model = CrowdClustering(n_clusters=5, n_init=2).fit(made.data)
            truth = known_clusters(made.truth, made.data.items)
            found.append(pair_scores(model, made.data, truth))
        (old_loss, old_error), (loss, error) = np.mean(found, axis=0)
        rows.append(Row(
            f"simulated, {degree} independent votes per item, pairs: log loss (calibration error)",
            "–", f"{old_loss:.3f} ({old_error:.3f}) → {loss:.3f} ({error:.3f})",
        ))  # fmt: skip
    return rows


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
