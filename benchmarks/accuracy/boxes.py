"""Boxes: pedestrians drawn by a real crowd, simulated crowds, false alarms and CPU time.

``python -m benchmarks.run boxes`` prints every row, with the rates of every worker. The default
threshold of 40% of the votes and the dependence of votes in BoxEM were chosen on this real crowd
and on simulated ones.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np

from benchmarks.accuracy.real_data import data_folder
from benchmarks.rows import Row
from wisecrowd import simulate
from wisecrowd.aggregation import BoxConsensus, BoxEM
from wisecrowd.audit import audit_crowd
from wisecrowd.io.tables import read, read_frame
from wisecrowd.kinds.boxes.container import CrowdRegions
from wisecrowd.kinds.boxes.metrics import BoxTable, known_boxes, match_boxes
from wisecrowd.kinds.boxes.scorer import BoxScorer, answers_of

METHODS = {
    "box-consensus (default)": (BoxConsensus, 0.91, 0.825, None),
    "votes of a quarter": (lambda: BoxConsensus(threshold=0.25), None, None, None),
    "votes of half": (lambda: BoxConsensus(threshold=0.5), None, None, None),
    "sides by medians": (lambda: BoxConsensus(corners="median"), None, None, None),
    "sides by student-em": (lambda: BoxConsensus(corners="student-em"), None, None, None),
    "box-em": (BoxEM, None, None, 0.98),
    "box-em, threshold .2": (lambda: BoxEM(threshold=0.2), None, None, None),
    "box-em, medians": (lambda: BoxEM(corners="median"), None, None, None),
}


def pedestrians() -> tuple[CrowdRegions, Any]:
    """Return the boxes of 41 workers in 560 images, and the experts' boxes."""
    folder = data_folder() / "pedestrian_boxes"
    seen = read_frame(folder / "assignments.csv")
    data: Any = read(folder / "answers.csv", type="boxes")
    data = data.with_seen(seen["task"], seen["worker"])
    return data, known_boxes(read_frame(folder / "truth.csv"), data)


def run() -> list[Row]:
    data, truth = pedestrians()
    rows = [one for name in METHODS for one in _real(name, data, truth)]
    rows += _workers(BoxEM().fit(data))
    return [*rows, *_simulated(), _false_alarms(), _speed()]


def _real(name: str, data: CrowdRegions, truth: Any) -> list[Row]:
    make, f1, iou, precision = METHODS[name]
    model = make().fit(data)
    scores = BoxScorer().score(model, truth)
    bars = {"box_f1": f1, "mean_iou": iou, "box_precision": precision}
    asked = {key: bar for key, bar in bars.items() if bar is not None}
    found = truth.part(answers_of(model).table(classes=False))
    right = np.zeros(len(found.boxes))
    right[match_boxes(found, BoxTable(*truth.table), 0.5).first] = 1
    return [Row(
        f"pedestrian_boxes, {name}: F1 / mean IoU (precision, recall; F1 at .75; confidence)",
        " / ".join(f"{key} ≥ {bar}" for key, bar in asked.items()) or "–",
        f"{scores['box_f1']:.3f} / {scores['mean_iou']:.3f} ({scores['box_precision']:.3f}, "
        f"{scores['box_recall']:.3f}; {scores['box_f1_75']:.3f}; "
        f"claimed {model.box_confidence_.mean():.3f}, right {right.mean():.3f})",
        all(scores[key] >= bar for key, bar in asked.items()) if asked else None,
    )]  # fmt: skip


def _workers(model: Any) -> list[Row]:
    table = model.worker_columns()
    order = np.argsort(-table["n_labels"], kind="stable")
    texts = [
        f"{table['worker'][j]}: {table['miss_rate'][j]:.2f}, {table['phantoms_per_image'][j]:.2f}"
        for j in order.tolist()
    ]
    what = "pedestrian_boxes, box-em: miss rate and phantoms per image of every worker"
    return [Row(what, "–", "; ".join(texts), None)]


def _simulated() -> list[Row]:
    rows = []
    for name, params in (
        ("miss .15, .1 phantoms", {}),
        ("miss .3, .5 phantoms, a fifth hard", {"miss": 0.3, "phantoms": 0.5, "hard": 0.2}),
        ("all too loose by .1", {"looseness": 0.1, "bias": 0.1}),
    ):
        for make in (BoxConsensus, BoxEM):
            found = []
            for seed in range(3):
                made = simulate.boxes(300, 20, simulate.PerTask(5), random_state=seed, **params)
                truth = known_boxes(made.truth, made.data)
                model = make().fit(made.data)
                scores = BoxScorer().score(model, truth)
                claimed = float(model.box_confidence_.mean())
                found.append([scores[key] for key in ("box_f1", "mean_iou", "box_precision")]
                             + [claimed])  # fmt: skip
            f1, iou, precision, claimed = np.mean(found, axis=0)
            rows.append(Row(
                f"simulated, {name}, {make.__name__}: F1 / mean IoU (precision; claimed)", "–",
                f"{f1:.3f} / {iou:.3f} ({precision:.3f}; {claimed:.3f})", None,
            ))  # fmt: skip
    return rows


def _false_alarms() -> Row:
    found: Counter[str] = Counter()
    for seed in range(30):
        for params in ({}, {"hard": 0.2, "miss": 0.25, "phantoms": 0.4}, {"mean_objects": 0.7}):
            data = simulate.boxes(60, 12, simulate.PerTask(5), random_state=seed, **params).data
            found.update(one.id for one in audit_crowd(data).findings)
    share = sum(found.values()) / 90
    shown = f"{share:.3f} ({', '.join(f'{k} {n}' for k, n in found.items()) or 'none'})"
    return Row("audit of 90 honest crowds of boxes: findings per crowd", "≤ 0.05", shown,
               share <= 0.05)  # fmt: skip


def _speed() -> Row:
    data = simulate.boxes(10_000, 60, simulate.PerTask(5), random_state=0).data
    BoxEM().fit(data[:2000])  # compiles
    begun = time.process_time()
    BoxEM().fit(data)
    seconds = time.process_time() - begun
    return Row(f"box-em, {data.n_boxes} boxes in 10000 images: CPU s of a fit", "–",
               f"{seconds:.2f}", None)  # fmt: skip
