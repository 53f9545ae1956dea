"""Honest confidence of masks: boxes of pedestrians as masks, and simulated crowds.

``python -m benchmarks.run honest_masks`` prints every row; about a minute of CPU time. There is
no public crowd of real masks here: rows have no bar.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.accuracy.boxes import pedestrians
from benchmarks.rows import Row
from wisecrowd.aggregation import MaskEM
from wisecrowd.kinds.masks.container import CrowdMasks
from wisecrowd.simulate import Dense, masks

SCALE = 8  # pixels of the image that a side of a pixel of the mask has
CROWDS: dict[str, dict[str, Any]] = {
    "default workers": {}, "careless workers": {"miss": 0.3, "shift": 0.2},
    "too wide or too tight": {"offset": 0.3},
}  # fmt: skip


def run() -> list[Row]:
    return [row("pedestrian_boxes as masks", *rasterised_pedestrians()), *simulated()]


def row(what: str, data: CrowdMasks, truth: dict[Any, np.ndarray]) -> Row:
    """Return how far claims are from the IoU with the truth, of pixels alone and as published."""
    model = MaskEM().fit(data)
    claims, right, pixels = [], [], []
    for i, task in enumerate(data.tasks.tolist()):
        p = model.pixel_probabilities(task)
        found, wanted = p >= 0.5, truth[task].astype(bool)
        union = (found | wanted).sum()
        if not found.any():
            continue
        right.append((found & wanted).sum() / union)
        pixels.append(p[found].sum() / (found.sum() + p[~found].sum()))
        claims.append(model.confidence_[i])
    mean, old, new = (float(np.mean(one)) for one in (right, pixels, claims))
    away, before = (float(np.abs(np.subtract(one, right)).mean()) for one in (claims, pixels))
    return Row(
        f"{what}, mask-em: |claim − IoU|, of pixels alone → as published", "–",
        f"{before:.3f} → {away:.3f} (IoU {mean:.3f}; claimed {old:.3f} → {new:.3f})",
    )  # fmt: skip


def rasterised_pedestrians(n_images: int | None = None) -> tuple[CrowdMasks, dict[Any, np.ndarray]]:
    """Return the boxes of each look and of the truth as the pixels that they cover."""
    data, truth = pedestrians()
    table = truth.table
    tasks = np.flatnonzero(truth.known)[:n_images]
    boxes = np.concatenate([data.boxes, table.boxes])
    width, height = (
        np.ceil((boxes[:, k] + boxes[:, k + 2]).max() / SCALE).astype(int) for k in (0, 1)
    )
    looks = np.flatnonzero(np.isin(data.task, tasks))
    drawn = [raster(data.boxes[data.box_annotation == e], height, width) for e in looks]
    masks_ = CrowdMasks.from_arrays(
        data.tasks[data.task[looks]], data.workers[data.worker[looks]], drawn
    )
    known = {
        data.tasks[i]: raster(table.boxes[table.task == i], height, width) for i in tasks.tolist()
    }
    return masks_, known


def raster(boxes: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return the pixels whose centres a box covers."""
    x, y = (np.arange(n) * SCALE + SCALE / 2 for n in (width, height))
    found = np.zeros((height, width), dtype=bool)
    for left, top, wide, high in boxes.tolist():
        across, down = (x >= left) & (x < left + wide), (y >= top) & (y < top + high)
        found |= down[:, None] & across
    return found


def simulated(n_images: int = 60, size: int = 128) -> list[Row]:
    """Return what claims are worth where borders of workers are independent."""
    rows = []
    for name, options in CROWDS.items():
        made = masks(n_images, 5, Dense(), height=size, width=size, random_state=11, **options)
        tasks = made.data.tasks.tolist()
        true = CrowdMasks.from_arrays(tasks, ["truth"] * len(tasks), made.truth.tolist())
        known = {task: true.dense(i) for i, task in enumerate(true.tasks.tolist())}
        rows.append(row(f"simulated, {name}", made.data, known))
    return rows


if __name__ == "__main__":
    print("\n".join(one.line() for one in run()))
