"""A small crowd for the common checks, and the symmetries that they verify."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.graphs import PerTask
from wisecrowd.core.kinds import Symmetry
from wisecrowd.kinds.masks.container import HEIGHT, WIDTH, CrowdMasks
from wisecrowd.kinds.masks.run_lengths import counts_of, dense_mask
from wisecrowd.kinds.masks.simulate import masks
from wisecrowd.testing.foundation import Make


def example(make: Make, seed: int = 0) -> CrowdMasks:
    """Return 12 images of 18 × 15 pixels, marked by 4 of 7 workers each, with text ids."""
    made = masks(
        12, 7, PerTask(4), height=18, width=15, radius=0.2, offset=0.2, random_state=seed
    ).data
    return replace(
        made,
        tasks=np.array([f"task-{i:05d}" for i in range(made.n_tasks)], dtype=object),
        workers=np.array([f"worker-{j:04d}" for j in range(made.n_workers)], dtype=object),
    )


def _moved_masks(
    runs: Any, pointer: Any, height: Any, width: Any, move: Callable[[Any], Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the run lengths of moved images, and their pointers."""
    found = []
    for e in range(len(pointer) - 1):
        own = runs[pointer[e] : pointer[e + 1]]
        found.append(counts_of(move(dense_mask(own, int(height[e]), int(width[e])))))
    return np.concatenate(found), np.cumsum([0, *map(len, found)])


def _move_masks(data: CrowdMasks, move: Callable[[Any], Any]) -> CrowdMasks:
    sizes = data.height[data.task], data.width[data.task]
    mask, pointer = _moved_masks(data.mask, data.pointer, *sizes, move)
    size = np.array([move(np.empty((h, w))).shape for h, w in
                     zip(data.height.tolist(), data.width.tolist(), strict=True)])  # fmt: skip
    return replace(
        data, mask=mask.astype(np.int32), pointer=pointer,
        task_columns={HEIGHT: size[:, 0].copy(), WIDTH: size[:, 1].copy()},
    )  # fmt: skip


def _images_moved(learned: Mapping[str, Any], move: Callable[[Any], Any]) -> dict[str, Any]:
    pointer = np.append(0, np.cumsum(learned["n_runs_"]))
    sizes = learned["height_"], learned["width_"]
    kept = ("area_", "confidence_", "worker_accuracy_", "sensitivity_", "worker_iou_")
    moved = _moved_masks(learned["mask_runs_"], pointer, *sizes, move)[0]
    return {"mask_runs_": moved} | {name: learned[name] for name in kept}


def _image_symmetry(name: str, move: Callable[[Any], Any]) -> Symmetry:
    return Symmetry(
        name=name,
        change=lambda data: _move_masks(data, move),
        expected=lambda learned: _images_moved(learned, move),
    )


SYMMETRIES = (
    _image_symmetry("swapping rows and columns", np.transpose),
    _image_symmetry("turning images upside down", np.flipud),
)
