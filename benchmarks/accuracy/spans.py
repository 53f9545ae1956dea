"""Spans: named entities by a real crowd, calibration of their confidence, and CPU time.

``python -m benchmarks.run spans`` prints every row.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.real_data import data_folder
from benchmarks.rows import Row
from wisecrowd import simulate
from wisecrowd.aggregation import BSC, HMMCrowd, TokenWise
from wisecrowd.io.tables import read, read_truth
from wisecrowd.kinds.sequences.answers import known_tags
from wisecrowd.kinds.sequences.metrics import EXACT, compare_spans, span_scores

Floats = NDArray[np.float64]
METHODS: dict[str, tuple[Callable[[], Any], float | None]] = {
    "votes, legal tags": (lambda: TokenWise("majority-vote"), None),
    "Dawid-Skene, legal tags": (TokenWise, 0.755),
    "HMMCrowd": (HMMCrowd, None),
    "BSC, EM": (lambda: BSC(variational=False), None),
    "BSC": (BSC, 0.765),
}


SEEDS = range(10, 15)  # constants were chosen on seeds 0 and 1
MANY_LABELS = (2, 3, 5)


def calibration_error(confidence: Floats, right: NDArray[np.bool_], bins: int = 10) -> float:
    """Return the expected calibration error of the confidence of spans."""
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    apart = np.bincount(place, confidence - right, bins)
    return float(np.abs(apart).sum() / max(len(right), 1))


def simulated_row(name: str, make: Callable[[], Any]) -> Row:
    """Return what is claimed and what is right in simulated crowds."""
    claimed, true, error = [], [], []
    for seed in SEEDS:
        for labels in MANY_LABELS:
            made = simulate.sequences(200, 15, simulate.PerTask(labels), random_state=seed)
            data, model = made.data, make().fit(made.data)
            truth = known_tags(dict(enumerate(made.truth)), data)
            spans, wanted = (
                data.tag_scheme.spans(tags, data.token_pointer) for tags in (model.path_, truth)
            )
            right = compare_spans(spans, wanted, data.length) == EXACT
            claimed.append(model.span_confidence_.mean())
            true.append(right.mean())
            error.append(calibration_error(model.span_confidence_, right))
    return Row(
        f"simulated crowds of 200 texts, 2, 3 or 5 labels each, {name}: confidence of spans", "–",
        f"confidence {np.mean(claimed):.3f}, right {np.mean(true):.3f}, calibration error "
        f"{np.mean(error):.3f}", None,
    )  # fmt: skip


def run() -> list[Row]:
    folder, rows = data_folder() / "ner_mturk", []
    data = read(folder / "answers.csv", type="sequences")
    table = read_truth(folder / "truth.csv")
    known = dict(zip(table["task"].to_pylist(), table["label"].to_pylist(), strict=True))
    truth = known_tags(known, data)
    wanted = data.tag_scheme.spans(truth, data.token_pointer)
    for name, (make, bar) in METHODS.items():
        model = make().fit(data)
        scores = span_scores(data.tag_scheme, truth, model.path_, data.token_pointer)
        spans = data.tag_scheme.spans(model.path_, data.token_pointer)
        right = compare_spans(spans, wanted, data.length) == EXACT
        # Constants were chosen on the even tasks; the odd ones judge.
        judged = spans.sequence % 2 == 1
        own, true = model.span_confidence_[judged], right[judged]
        said = (
            f"confidence {own.mean():.3f}, right {true.mean():.3f}, calibration error "
            f"{calibration_error(own, true):.3f} on the odd tasks"
        )
        rows.append(Row(
            f"ner_mturk, {name}: span F1 (relaxed; mean confidence of spans)",
            "–" if bar is None else f"≥ {bar}",
            f"{scores['span_f1']:.3f} ({scores['relaxed_f1']:.3f}; {said})",
            None if bar is None else scores["span_f1"] >= bar,
        ))  # fmt: skip
    rows += [simulated_row(name, make) for name, (make, _) in METHODS.items()]
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        model = BSC().fit(data)
        seconds.append((time.process_time() - begun) / model.n_iter_)
    best = float(np.min(seconds))
    rows.append(Row(
        f"BSC, {len(data.tags)} token labels, {data.n_classes} tags: CPU s per iteration",
        "≤ 0.05", f"{best:.4f}", best <= 0.05,
    ))  # fmt: skip
    return rows
