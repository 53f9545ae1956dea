"""Honest confidence of boxes: pedestrians drawn by a real crowd, and simulated crowds.

``python -m benchmarks.run honest_boxes`` prints every row; about half a minute of CPU time.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.accuracy.boxes import pedestrians
from benchmarks.accuracy.spans import calibration_error
from benchmarks.rows import Row
from wisecrowd import simulate
from wisecrowd.aggregation import BoxConsensus
from wisecrowd.kinds.boxes.metrics import BoxTable, known_boxes, match_boxes
from wisecrowd.kinds.boxes.scorer import BoxScorer, answers_of

NEAR = 0.002  # tolerated loss of F1 at IoU .5
SEEDS = (0, 1, 2)


def run() -> list[Row]:
    return [*real(*pedestrians()), *caution()]


def real(data: Any, truth: Any) -> list[Row]:
    """Return the scores of the default beside those of medians and of shares of votes."""
    fits, seconds = [], []
    for corners in ("median", "gaussian-em"):
        begun = time.process_time()
        fits.append(BoxConsensus(corners=corners).fit(data))
        seconds.append(time.process_time() - begun)
    old, new = (BoxScorer().score(fit, truth) for fit in fits)
    shares, claims = claim_errors(fits[1], data, truth)
    return [
        Row("pedestrian_boxes, box-consensus: F1 at IoU .75", "≥ 0.78",
            f"{new['box_f1_75']:.3f} (medians {old['box_f1_75']:.3f})", new["box_f1_75"] >= 0.78),
        Row("pedestrian_boxes, box-consensus: F1 at IoU .5",
            f"≥ {old['box_f1']:.3f} of medians − {NEAR}",
            f"{new['box_f1']:.3f} (mean IoU {old['mean_iou']:.3f} → {new['mean_iou']:.3f})",
            new["box_f1"] >= old["box_f1"] - NEAR),
        Row("pedestrian_boxes, box-consensus: calibration error of the confidence", "≤ 0.02",
            f"{claims:.3f} (of shares of votes {shares:.3f})", claims <= 0.02),
        Row("pedestrian_boxes, box-consensus: CPU s of a fit", "–",
            f"{seconds[1]:.2f} (medians {seconds[0]:.2f})"),
    ]  # fmt: skip


def claim_errors(model: BoxConsensus, data: Any, truth: Any) -> tuple[float, float]:
    """Return the calibration errors of shares, with half a vote each way, and of claims."""
    found = truth.part(answers_of(model).table(classes=False))
    right = np.zeros(len(found.boxes), dtype=bool)
    right[match_boxes(found, BoxTable(*truth.table), 0.5).first] = True
    every = answers_of(model).task
    known = np.isin(every, found.task)
    n = np.bincount(data.task, minlength=data.n_tasks)[every[known]]
    shares = (model.box_share_[known] * n + 0.5) / (n + 1)
    return calibration_error(shares, right), calibration_error(model.box_confidence_[known], right)


def caution(n_images: int = 200, seeds: tuple[int, ...] = SEEDS) -> list[Row]:
    """Return claims and errors where workers are independent, and where some objects are hard."""
    rows = []
    for what, params in (
        ("independent workers", {}),
        ("miss .3, .5 phantoms, a fifth hard", {"miss": 0.3, "phantoms": 0.5, "hard": 0.2}),
    ):
        found = []
        for seed in seeds:
            made = simulate.boxes(n_images, 20, simulate.PerTask(5), random_state=seed, **params)
            model, truth = BoxConsensus().fit(made.data), known_boxes(made.truth, made.data)
            scores = [BoxScorer().score(model, truth)["box_f1_75"]]
            medians = BoxConsensus(corners="median").fit(made.data)
            scores.append(BoxScorer().score(medians, truth)["box_f1_75"])
            found.append((*claim_errors(model, made.data, truth), *scores))
        shares, claims, f1, old = np.mean(found, axis=0)
        rows.append(Row(
            f"simulated, {what}: calibration error of shares and claims; F1 at IoU .75", "–",
            f"{shares:.3f} → {claims:.3f}; {old:.3f} → {f1:.3f}",
        ))  # fmt: skip
    return rows


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
