"""Confusion matrices near a task: counted on the clear cases around it."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels

Floats = NDArray[np.float64]
_TASKS_AT_ONCE = 1024


def neighbour_rows(
    features: Floats,
    probas: Floats,
    labels: CrowdLabels,
    table: Floats,
    *,
    threshold: float,
    n_neighbours: int,
    shrinkage: float,
) -> Floats:
    r"""Return (E, K): :math:`\theta_j(x_i)[\cdot, l]` for each annotation, from its neighbours.

    Anchors are labelled tasks whose class is clear. An annotation's row counts what its worker
    said of the anchors next to the task, and adds the worker's table as ``shrinkage`` labels. A
    task is no anchor of its own.

    Parameters
    ----------
    features : (N, d)
        Where tasks lie.
    probas : (N, K)
        The classifier's output.
    labels : CrowdLabels
    table : (J, K, K)
    threshold : float
        Anchors have a class of at least this probability.
    n_neighbours : int
        Anchors that are looked at around each task.
    shrinkage : float
    """
    anchors = np.flatnonzero((probas.max(axis=1) >= threshold) & (labels.labels_per_task > 0))
    prior = table[labels.worker, :, labels.label]  # (E, K)
    if len(anchors) < 2 or not labels.n_annotations:
        return np.asarray(prior)
    kind = probas[anchors].argmax(axis=1)
    key = labels.task.astype(np.int64) * labels.n_workers + labels.worker  # sorted
    places = torch.from_numpy(features)
    rows = np.empty_like(prior)
    for first in range(0, labels.n_tasks, _TASKS_AT_ONCE):
        last = min(first + _TASKS_AT_ONCE, labels.n_tasks)
        near = _nearest(places, np.arange(first, last), anchors, n_neighbours)
        edges = slice(int(labels.indptr[first]), int(labels.indptr[last]))
        around = near[labels.task[edges] - first]  # (e, n): positions among the anchors
        wanted = anchors[around] * np.int64(labels.n_workers) + labels.worker[edges, None]
        found = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        seen = (key[found] == wanted) & (anchors[around] != labels.task[edges, None])
        same = seen & (labels.label[found] == labels.label[edges, None])
        total, agreed = _count(kind[around], seen, prior), _count(kind[around], same, prior)
        rows[edges] = (agreed + shrinkage * prior[edges]) / (total + shrinkage)
    return rows


def _nearest(
    places: torch.Tensor, tasks: NDArray[np.int64], anchors: NDArray[np.int64], n: int
) -> NDArray[np.int64]:
    """Return (len(tasks), n) positions of the nearest anchors."""
    distance = torch.cdist(places[torch.from_numpy(tasks)], places[torch.from_numpy(anchors)])
    nearest = distance.topk(min(n, len(anchors)), dim=1, largest=False).indices
    return np.asarray(nearest.numpy())


def _count(kind: NDArray[np.int64], keep: NDArray[np.bool_], prior: Floats) -> Floats:
    """Return (e, K): how many neighbours of each class are to be kept."""
    n_edges, n_classes = len(kind), prior.shape[1]
    cell = np.arange(n_edges)[:, None] * n_classes + kind
    counts = np.bincount(cell[keep], minlength=n_edges * n_classes)
    return np.asarray(counts.reshape(n_edges, n_classes), dtype=np.float64)
