"""Agreement of masks against the overlap of all pairs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from wisecrowd import CrowdMasks
from wisecrowd.kinds.masks.agreement import agreement_evidence


def test_mean_iou_is_that_of_all_pairs():
    rng = np.random.default_rng(0)
    task, worker = np.divmod(np.arange(12), 4)
    task, worker, masks = task[1:], worker[1:], [rng.random((5, 6)) < 0.5 for _ in range(11)]
    data = CrowdMasks.from_arrays(task, worker, masks)
    iou = [
        np.sum(masks[a] & masks[b]) / np.sum(masks[a] | masks[b])
        for a, b in combinations(range(11), 2)
        if task[a] == task[b]
    ]
    found = agreement_evidence(data).coefficients["mean_iou"].value
    assert found == pytest.approx(np.mean(iou))
