"""Tasks on a graph: Dawid-Skene with and without the 10 nearest neighbours of the features.

``python -m benchmarks.run graphs`` prints every row.
"""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy.real_data import data_folder
from benchmarks.rows import Row
from wisecrowd.aggregation import DawidSkene, GraphSmoothed, OneCoin
from wisecrowd.io.tables import read, read_truth
from wisecrowd.kinds.classes.families.task_graph import nearest_neighbours

BARS = {"labelme": 0.835, "music_genre": 0.795, "sentiment_polarity": None}
MOST_LOSS = 0.002  # of sentiment_polarity


def run() -> list[Row]:
    rows = []
    for name, bar in BARS.items():
        folder = data_folder() / name
        labels = read(folder / "answers.csv")
        table = read_truth(folder / "truth.csv")
        truth = dict(zip(table["task"].to_pylist(), table["label"].to_pylist(), strict=True))
        X = np.load(folder / "features.npy")
        ids = [str(i) for i in range(len(X))] if isinstance(labels.tasks[0], str) else None
        edges = nearest_neighbours(X, ids)
        for method in (DawidSkene(), OneCoin()):
            plain = method.fit(labels).score(labels, truth)
            smoothed = GraphSmoothed(type(method)(), graph=edges).fit(labels)
            found = smoothed.score(labels, truth)
            judged = isinstance(method, DawidSkene)
            least = plain - MOST_LOSS if bar is None else bar
            rows.append(Row(
                f"{name}, {type(method).__name__} on the graph of 10 nearest neighbours",
                f"≥ {least:.3f}" if judged else "–",
                f"{plain:.4f} → {found:.4f} (homophily {smoothed.homophily_:.2f}, mean strength "
                f"{smoothed.beta_:.3f}, {smoothed.n_rounds_} rounds)",
                found >= least if judged else None,
            ))  # fmt: skip
    return rows
