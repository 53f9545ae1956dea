"""Scores that select an epoch: held-out labels of the crowd, or known classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.families.confusion import safe_log
from wisecrowd.learning.training.crowd_data import CrowdData, Features, log_probas_of
from wisecrowd.learning.training.crowd_model import CrowdModel
from wisecrowd.learning.training.label_model import fit_confusion, label_log_probas
from wisecrowd.learning.training.output_calibration import HeldOut, judge_by_labels

Floats = NDArray[np.float64]
MOST_LABELS = 20_000  # labels that estimate confusion matrices after every epoch


def held_out(rows: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Return rows to train on and held-out rows, drawn at random and sorted."""
    order = rows[torch.randperm(len(rows))]
    n_valid = min(max(1, round(share * len(order))), len(order) - 1)
    return order[n_valid:].sort().values, order[:n_valid].sort().values


@torch.inference_mode()
def crowd_score(model: CrowdModel, data: CrowdData, train: Tensor, valid: Tensor) -> float:
    """Return the mean log-likelihood of the labels of held-out tasks; needs no gold.

    A model without a likelihood defines ``held_out_score`` instead.
    """
    model.eval()
    own = model.held_out_score(data, valid)
    if own is not None:
        return own
    total = weight = 0.0
    for batch in data.batches(valid, 4096):
        values = model.label_log_probas(batch)
        if values is None:
            return _fitted_score(model, data, train, valid)
        each = data.counts(batch)  # balancing affects training, not the likelihood
        total += float((each * values).sum())
        weight += float(each.sum())
    return total / max(weight, 1e-12)


def judge_held_out(
    model: CrowdModel, seen: CrowdData, data: CrowdData, valid: Tensor
) -> HeldOut | None:
    """Return what the labels of held-out rows say about a trained model.

    Parameters
    ----------
    model : CrowdModel
        Trained on ``seen``, the data without the labels of the rows ``valid``.
    """
    log_probas = log_probas_of(model.network, data.features, device=data.device)
    table = model.confusion()
    if table is None:
        used = np.flatnonzero(seen.labels.labels_per_task > 0)
        confusion = _confusion_of(log_probas, seen.labels, used)
    else:
        confusion = table.detach().cpu().numpy().astype(np.float64)
    rows = valid.numpy()
    return judge_by_labels(log_probas[rows], data.labels[rows], confusion)


def _fitted_score(model: CrowdModel, data: CrowdData, train: Tensor, valid: Tensor) -> float:
    """Return the score of a model without confusion matrices: estimate them from its output."""
    log_probas = log_probas_of(model.network, data.features, device=data.device)
    unseen = data.labels[valid.numpy()]
    confusion = _confusion_of(log_probas, data.labels, train.numpy())
    values = label_log_probas(log_probas[valid.numpy()], unseen, safe_log(confusion))
    return float(np.average(values, weights=unseen.weight))


def _confusion_of(log_probas: Floats, labels: CrowdLabels, rows: NDArray[np.int64]) -> Floats:
    """Return (J, K, K) confusion matrices by the classifier's output on some rows, or on a part."""
    step = -(-int(labels.labels_per_task[rows].sum()) // MOST_LABELS)
    some = rows[:: max(step, 1)]
    return fit_confusion(np.exp(log_probas[some]), labels[some])


def gold_score(model: CrowdModel, features: Features, codes: NDArray[Any], device: Any) -> float:
    """Return the mean log-probability of the known classes of a validation set."""
    log_probas = log_probas_of(model.network, features, device=device)
    return float(log_probas[np.arange(len(codes)), codes].mean())
