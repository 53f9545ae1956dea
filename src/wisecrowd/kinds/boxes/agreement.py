"""Agreement of boxes: F1 of the boxes of two workers of an image."""

from __future__ import annotations

import numpy as np

from wisecrowd.core.agreement_evidence import (
    AgreementEvidence,
    Measured,
    labels_that_count,
    ratio_of_pairs,
)
from wisecrowd.core.types import Longs
from wisecrowd.kinds.boxes.container import CrowdRegions
from wisecrowd.kinds.boxes.metrics import AT_LEAST, EQUAL, overlap, touching_pairs


def agreement_evidence(data: CrowdRegions) -> AgreementEvidence:
    """Return the annotations that count, with their coefficients.

    ``box_f1`` is F1 of the boxes of two workers of an image at an IoU of .5, over all pairs
    together, and ``box_f1_75`` the same at .75. Classes must be equal.

    Examples
    --------
    >>> data = CrowdRegions.from_arrays(
    ...     ["a"] * 3, ["ann", "bob", "bob"], [0, 1, 50], [0, 0, 50], [10] * 3, [10] * 3)
    >>> round(agreement_evidence(data).coefficients["box_f1"].value, 2)
    0.67
    """
    data = labels_that_count(data)
    names = "box_f1", "box_f1_75"
    return AgreementEvidence(
        task=data.task, worker=data.worker,
        coefficients={
            name: _f1(data, at_least) for name, at_least in zip(names, AT_LEAST, strict=True)
        },
    )  # fmt: skip


def _f1(data: CrowdRegions, at_least: float) -> Measured:
    """Return F1 over all pairs of workers of an image."""
    first, second = matched_boxes(data, at_least)
    n = data.n_annotations
    annotation = np.repeat(np.arange(n), np.diff(data.pointer))
    equal = np.bincount(annotation[np.concatenate([first, second])], minlength=n)
    size = np.diff(data.pointer)
    others = data.labels_per_task[data.task] - 1
    total = np.bincount(data.task, size, data.n_tasks)[data.task]
    both = np.where(others > 0, others * size + total - size, 0.0)
    return ratio_of_pairs(2 * equal.astype(np.float64), both.astype(np.float64))


def matched_boxes(data: CrowdRegions, at_least: float) -> tuple[Longs, Longs]:
    """Match the boxes of all pairs of annotations of the same image, one to one.

    Of two boxes that overlap with the same one of the other annotation, the one with the larger IoU
    is matched first. Boxes that do not touch are never compared.
    """
    annotation = np.repeat(np.arange(data.n_annotations), np.diff(data.pointer))
    task = data.task[annotation]
    found = []
    for one, two in touching_pairs(data.boxes, task):
        first, second = np.minimum(one, two), np.maximum(one, two)
        good = (annotation[first] != annotation[second]) & (data.label[first] == data.label[second])
        first, second = first[good], second[good]
        iou = overlap(data.boxes[first], data.boxes[second])
        good = iou >= at_least - 2 * EQUAL  # rounding
        found.append((first[good], second[good], iou[good]))
    if not found:
        none = np.zeros(0, dtype=np.int64)
        return none, none
    first, second, iou = (np.concatenate(parts) for parts in zip(*found, strict=True))
    n = data.n_annotations
    left, right = first * n + annotation[second], second * n + annotation[first]
    order = np.lexsort((second, first, -iou))
    kept = []
    while len(order):  # each round matches the pairs that are the best of both of their boxes
        best = np.zeros((2, len(order)), dtype=bool)
        for side, key in enumerate((left, right)):
            best[side, np.unique(key[order], return_index=True)[1]] = True
        chosen = order[best.all(axis=0)]
        kept.append(chosen)
        taken = np.isin(left[order], left[chosen]) | np.isin(right[order], right[chosen])
        order = order[~taken]
    rows = np.concatenate(kept) if kept else order
    return first[rows], second[rows]
