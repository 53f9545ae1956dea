"""Same or different: clusters of birds by a real crowd, and simulated crowds of growing degree.

``python -m benchmarks.run same`` prints every row.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.accuracy.real_data import data_folder
from benchmarks.rows import Row
from wisecrowd.aggregation import CrowdClustering, SignedSpectral
from wisecrowd.io.tables import read, read_frame
from wisecrowd.kinds.same.answers import known_clusters
from wisecrowd.kinds.same.scorer import cluster_scores
from wisecrowd.simulate import same_votes

SEEDS = 3
METHODS = {
    "signed spectral, 6 clusters": lambda seed: SignedSpectral(n_clusters=6, random_state=seed),
    "one noise for all, 6 clusters": lambda seed: CrowdClustering(
        n_clusters=6, strength=1e6, random_state=seed
    ),
    "workers' noise, number of clusters chosen": lambda seed: CrowdClustering(random_state=seed),
}
BARS = {"workers' noise, number of clusters chosen": (0.70, 0.59)}
DEGREES = (20, 50, 100)


def run() -> list[Row]:
    return [*birds(), *simulated()]


def birds() -> list[Row]:
    """Return rows of 342 photographs of birds in 6 groups, 9000 votes of 300 workers."""
    folder, rows = data_folder() / "birds5_pairs", []
    data = read(folder / "answers.csv", type="same")
    table = read_frame(folder / "truth.csv")
    known = dict(zip(table["item"].to_pylist(), table["cluster"].to_pylist(), strict=True))
    truth = known_clusters(known, data.items)
    for name, make in METHODS.items():
        found, claimed, sizes = [], [], []
        begun = time.process_time()
        for seed in range(SEEDS):
            model = make(seed).fit(data)
            found.append(list(cluster_scores(truth, model.cluster_).values()))
            claimed.append(model.probability_.mean())
            sizes.append(len(np.unique(model.cluster_)))
        seconds = (time.process_time() - begun) / SEEDS
        worst = np.min(found, axis=0)
        bar = BARS.get(name)
        rows.append(Row(
            f"birds5_pairs, {name}: accuracy after matching / ARI, seeds 0 to {SEEDS - 1}",
            "–" if bar is None else f"≥ {bar[0]:.2f} / ≥ {bar[1]:.2f}",
            f"{' and '.join('/'.join(f'{x:.3f}' for x in one) for one in found)} "
            f"({sizes} clusters, mean probability {np.mean(claimed):.3f}, {seconds:.1f} CPU s)",
            None if bar is None else bool((worst >= bar).all()),
        ))  # fmt: skip
    return rows


def simulated() -> list[Row]:
    """Return rows of 300 items in 5 clusters, with 5 seeds each."""
    rows = []
    for degree in DEGREES:
        results: dict[str, list[tuple[float, ...]]] = {"spectral": [], "workers' noise": []}
        for seed in range(5):
            made = same_votes(300, 60, 150 * degree, 5, random_state=seed)
            for name, model in (
                ("spectral", SignedSpectral(n_clusters=5)),
                ("workers' noise", CrowdClustering(n_clusters=5)),
            ):
                model.fit(made.data)
                results[name].append((
                    model.score(made.data, made.truth), float(model.probability_.mean()),
                    float(np.abs(model.same_rate_ - made.same_rate).mean()),
                ))  # fmt: skip
        for name, found in results.items():
            right, claimed, away = np.mean(found, axis=0)
            rows.append(Row(
                f"simulated, {degree} votes per item, {name}: accuracy (claimed; error of s)", "–",
                f"{right:.3f} ({claimed:.3f}; {away:.3f})", None,
            ))  # fmt: skip
    return rows
