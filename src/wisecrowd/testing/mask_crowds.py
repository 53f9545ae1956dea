"""Small crowds of masks for the checks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wisecrowd.core.masks import CrowdMasks
from wisecrowd.simulate import PerTask, masks
from wisecrowd.testing.foundation import Make


def small_masks(make: Make, random_state: int = 0) -> CrowdMasks:
    """Return 12 images of 18 × 15 pixels, marked by 4 of 7 workers each, with text ids."""
    made = masks(
        12, 7, PerTask(4), height=18, width=15, radius=0.2, offset=0.2, random_state=random_state
    ).data
    return replace(
        made,
        tasks=np.array([f"task-{i:05d}" for i in range(made.n_tasks)], dtype=object),
        workers=np.array([f"worker-{j:04d}" for j in range(made.n_workers)], dtype=object),
    )
