"""Agreement of masks: the overlap of two masks of the same image."""

from __future__ import annotations

import numpy as np

from wisecrowd.core.agreement_evidence import (
    AgreementEvidence,
    labels_that_count,
    ratio_of_pairs,
)
from wisecrowd.core.types import Floats
from wisecrowd.kinds.masks.container import CrowdMasks
from wisecrowd.kinds.masks.methods.patterns import MaskPatterns, sums_by


def agreement_evidence(data: CrowdMasks) -> AgreementEvidence:
    """Return the masks that count, with ``mean_iou``, the mean overlap of all pairs.

    Examples
    --------
    >>> one, two = np.ones((2, 2)), np.eye(2)
    >>> data = CrowdMasks.from_arrays(["i"] * 2, list("ab"), [one, two])
    >>> agreement_evidence(data).coefficients["mean_iou"].value
    0.5
    """
    data = labels_that_count(data)
    others = (data.labels_per_task[data.task] - 1).astype(np.float64)
    iou = np.nan_to_num(mean_overlaps(data)) * others
    return AgreementEvidence(
        task=data.task, worker=data.worker, coefficients={"mean_iou": ratio_of_pairs(iou, others)}
    )


def mean_overlaps(data: CrowdMasks) -> Floats:
    """Return the mean overlap of each mask with the others; two empty ones overlap completely."""
    from scipy.sparse import diags_array

    patterns = MaskPatterns.of(data)
    shared = (patterns.cover.T @ diags_array(patterns.pixels) @ patterns.cover).tocoo()
    row, column = shared.coords
    area = data.area.astype(np.float64)
    iou = np.where(row == column, 0.0, shared.data / (area[row] + area[column] - shared.data))
    total = sums_by(row, iou, data.n_annotations)
    empty = data.area == 0
    nobody = np.bincount(data.task[empty], minlength=data.n_tasks)[data.task]
    others = data.labels_per_task[data.task] - 1
    total += np.where(empty, nobody - 1, 0)
    return np.where(others > 0, total / np.maximum(others, 1), np.nan)
