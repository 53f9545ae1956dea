"""The weighted vote of Max-MIG: what each label of each worker says for each class."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wisecrowd.core.base import Aggregator
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.registry import get_method
from wisecrowd.families.confusion import safe_log
from wisecrowd.learning.coupled import vote_scores
from wisecrowd.learning.data import CrowdData
from wisecrowd.learning.neural import as_array
from wisecrowd.learning.targets import confusion_from, soft_votes
from wisecrowd.nn.batches import CrowdBatch

Floats = NDArray[np.float64]
LARGEST_LEAD = 10.0  # in logits, of a vote at the start: a surer one has no gradient left


class WeightedVote(nn.Module):
    r"""Logits :math:`\sum_j W_j[\cdot, y_{ij}]`; the weights are stored by (worker, label)."""

    def __init__(self, weight: Floats) -> None:
        super().__init__()
        by_label = np.ascontiguousarray(weight.transpose(0, 2, 1))  # (J, L, K)
        self.weight = nn.Parameter(torch.tensor(by_label, dtype=torch.float32))

    def forward(self, batch: CrowdBatch) -> Tensor:
        """Return (B, K)."""
        n_labels, n_classes = self.weight.shape[1:]
        rows = self.weight.reshape(-1, n_classes).index_select(
            0, batch.worker * n_labels + batch.label
        )
        return batch.per_task(rows if batch.weight is None else rows * batch.weight[:, None])


def start_weights(start: Any, data: CrowdData, floor: float) -> Floats:
    """Return (J, K, L) weights: log confusion matrices, zero for workers without labels.

    They are scaled down where many workers would make the vote too sure to change its mind.
    """
    labels = data.labels
    if isinstance(start, str) and start == "votes":
        probas = telling_votes(data)
    else:
        # A copy: the user's own object stays as it is.
        method = get_method(start)() if isinstance(start, str) else copy.deepcopy(start)
        if not isinstance(method, Aggregator):
            raise ParameterError(
                f"start is {start!r}; give 'votes', or an aggregation method or its name."
            )
        known = {t: labels.classes[g] for t, g in enumerate(data.gold) if g >= 0}
        gold = {labels.tasks[t]: value for t, value in known.items()} or None
        fitted = method.fit(labels, gold=gold)
        probas = fitted.probas_
        probas = probas.toarray() if hasattr(probas, "toarray") else probas
    weight = np.log(confusion_from(probas, labels, 1e-10) + floor)
    weight[labels.labels_per_worker == 0] = 0.0
    scores = np.sort(vote_scores(weight, labels)[labels.labels_per_task > 0], axis=1)
    lead = float(np.median(scores[:, -1] - scores[:, -2])) if labels.n_classes > 1 else 0.0
    return np.asarray(weight * min(1.0, LARGEST_LEAD / max(lead, 1e-300)))


def telling_votes(data: CrowdData) -> Floats:
    """Return (N, K) shares of votes that count by how much they tell.

    That is minus the log of how often its worker gives the label: who always says the same says
    nothing. Else a naive majority would make its class one that is possible everywhere.
    """
    labels = data.labels
    n_workers, n_classes = labels.n_workers, labels.n_classes
    cell = labels.worker.astype(np.int64) * n_classes + labels.label
    counts = np.bincount(cell, labels.weight, n_workers * n_classes).reshape(n_workers, n_classes)
    # workers with few labels are taken to use them as all do
    expected = counts + n_classes * counts.sum(axis=0) / max(counts.sum(), 1e-300)
    often = expected / expected.sum(axis=1, keepdims=True)
    told = 0.01 - safe_log(often).reshape(-1)[cell]  # a little, so that no task is without votes
    told = told if labels.weight is None else told * labels.weight
    return soft_votes(CrowdData(data.features, replace(labels, weight=told), data.gold))


def class_order(vote: WeightedVote, labels: CrowdLabels) -> Tensor:
    """Return the order in which labels speak for the class of their own name the most."""
    from scipy.optimize import linear_sum_assignment

    weight = as_array(vote.weight)  # (J, L, K)
    cell = labels.worker.astype(np.int64) * labels.n_classes + labels.label
    counts = np.bincount(cell, labels.weight, weight.shape[0] * weight.shape[1])
    speaks = np.einsum("jl,jlc->lc", counts.reshape(weight.shape[:2]), weight)
    return torch.from_numpy(linear_sum_assignment(speaks, maximize=True)[1])
