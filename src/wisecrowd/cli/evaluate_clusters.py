"""Scores of files of clusters, for ``wisecrowd evaluate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wisecrowd.cli.evaluate_answers import Evaluation
from wisecrowd.core.exceptions import DataError

if TYPE_CHECKING:
    from wisecrowd.cli.inputs import KnownFile
    from wisecrowd.cli.terminal import Notes

CLUSTER_COLUMNS = {"item", "cluster"}  # of a file of clusters


def evaluate_clusters(path: str, truth: KnownFile, notes: Notes) -> Evaluation:
    """Score a file of clusters against the true ones, whatever their names.

    Parameters
    ----------
    path : str
        A file as ``wisecrowd aggregate`` writes it: item and cluster.
    truth : KnownFile
        Item and cluster.
    notes : Notes
    """
    from wisecrowd.core.cluster_answers import known_clusters
    from wisecrowd.core.cluster_matching import cluster_scores
    from wisecrowd.core.ids.encoding import encode
    from wisecrowd.io.tables import read_frame

    frame = read_frame(path)
    if not set(frame.column_names) >= CLUSTER_COLUMNS:
        listed = ", ".join(repr(column) for column in frame.column_names)
        raise DataError(f"{path} has the columns {listed}, and clusters need item and cluster.")
    ids = np.empty(frame.num_rows, dtype=object)
    ids[:] = frame["item"].to_pylist()
    if len(set(ids.tolist())) < len(ids):
        twice = next(one for one in ids.tolist() if ids.tolist().count(one) > 1)
        raise DataError(f"Item {twice!r} is in {path} twice; keep one row.")
    found = encode(frame["cluster"].to_pylist(), "cluster").codes
    if (found < 0).any():
        raise DataError(
            f"Item {ids[int(np.argmax(found < 0))]!r} has no cluster in {path}; fill it in."
        )
    wanted = known_clusters(dict(zip(*truth.pairs(notes), strict=True)), ids)
    n_scored = int(np.count_nonzero(wanted >= 0))
    return Evaluation(cluster_scores(wanted, found), n_scored, len(ids), "items")
