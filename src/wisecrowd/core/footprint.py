"""Memory that a fit needs: one coefficient for each size of the crowd.

The coefficients are bytes, measured on crowds of several shapes (``python -m
benchmarks.speed.fit_memory calibrate``) with default parameters. They give the peak memory of a
fit, without the labels themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from wisecrowd.kinds.classes.container import CrowdLabels


MOST_VOTES = 1_000_000  # size of the vote table of the checks; they skip larger tables
DENSE_LIMIT = 50_000_000  # size of a posterior; larger ones are sparse over the received labels


class Footprint(NamedTuple):
    """Bytes per annotation, task and so on; each method declares its own.

    Attributes
    ----------
    label, task : float
    cell : float
        Per task × class.
    dense : float
        Per task × class, for methods whose posterior is sparse above ``DENSE_LIMIT`` entries.
    confusion : float
        Per worker × class².
    pair, pair_table : float
        Per pair of workers who share a task, and per pair × class².
    meeting : float
        Per task that two workers share, counted for every pair of workers.
    """

    label: float = 0.0
    task: float = 0.0
    cell: float = 0.0
    dense: float = 0.0
    confusion: float = 0.0
    pair: float = 0.0
    pair_table: float = 0.0
    meeting: float = 0.0


def sizes_of(labels: CrowdLabels, max_pairs: int | None = None) -> Footprint:
    """Return the sizes of a crowd by name; the number of pairs is an upper bound.

    A method keeps the tables of at most ``max_pairs`` pairs.
    """
    per_task = labels.labels_per_task.astype(np.float64)
    N, J, K = float(labels.n_tasks), float(labels.n_workers), float(labels.n_classes)
    meetings = float((per_task * (per_task - 1)).sum() / 2)
    pairs = min(meetings, J * (J - 1) / 2)
    return Footprint(
        label=float(labels.n_annotations),
        task=N,
        cell=N * K,
        dense=N * K if N * K <= DENSE_LIMIT else 0.0,
        confusion=J * K * K,
        pair=pairs,
        pair_table=(pairs if max_pairs is None else min(pairs, max_pairs)) * K * K,
        meeting=meetings,
    )


def bytes_needed(
    footprint: Footprint, labels: CrowdLabels, *, checked: bool = True, max_pairs: int | None = None
) -> int:
    """Return the peak memory of a fit in bytes.

    The posterior stays in memory after the fit, when the checks count the votes.
    """
    sizes = sizes_of(labels, max_pairs)
    fit = float(np.dot(footprint, sizes))
    if sizes.cell > MOST_VOTES or not checked:
        return int(fit)
    afterwards = 28 * sizes.cell + (8 * sizes.confusion if footprint.confusion else 0)
    return int(max(fit, afterwards))
