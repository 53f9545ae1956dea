"""Spans: named entities by a real crowd, calibration of their confidence, and CPU time.

``python -m benchmarks.run spans`` prints every row.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.accuracy.real_data import data_folder
from benchmarks.rows import Row
from wisecrowd.aggregation import BSC, HMMCrowd, TokenWise
from wisecrowd.core.sequence_truth import known_tags
from wisecrowd.core.span_errors import EXACT, compare_spans, span_scores
from wisecrowd.io.tables import read, read_truth

METHODS = {
    "votes, legal tags": (lambda: TokenWise("majority-vote"), None),
    "Dawid-Skene, legal tags": (TokenWise, 0.755),
    "HMMCrowd": (HMMCrowd, None),
    "BSC, EM": (lambda: BSC(variational=False), None),
    "BSC": (BSC, 0.765),
}


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
        said = f"confidence {model.span_confidence_.mean():.3f}, right {right.mean():.3f}"
        rows.append(Row(
            f"ner_mturk, {name}: span F1 (relaxed; mean confidence of spans)",
            "–" if bar is None else f"≥ {bar}",
            f"{scores['span_f1']:.3f} ({scores['relaxed_f1']:.3f}; {said})",
            None if bar is None else scores["span_f1"] >= bar,
        ))  # fmt: skip
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
