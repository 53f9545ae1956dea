"""Scores as tables show them: their headings, and probabilities from a confidence alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.ids.encoding import lookup

HEADINGS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro F1",
    "mean_absolute_error": "MAE",
    "quadratic_weighted_kappa": "weighted kappa",
    "log_loss": "log loss",
    "brier_score": "Brier score",
    "expected_calibration_error": "ECE",
    "r2": "R²",
    "rmse": "RMSE",
    "correlation": "correlation",
    "coverage": "in 95% interval",
    "kendall_tau": "Kendall τ",
    "pair_accuracy": "pair accuracy",
    "held_out_score": "held-out score",
    "standard_error": "± SE",
    "mean_confidence": "mean confidence",
    "expected_error": "expected error",
    "cpu_seconds": "CPU seconds",
    "span_f1": "span F1",
    "span_precision": "span precision",
    "span_recall": "span recall",
    "relaxed_f1": "relaxed F1",
    "token_accuracy": "token accuracy",
    "micro_f1": "micro F1",
    "exact_sets": "exact sets",
    "hamming_loss": "Hamming loss",
    "hamming_expected": "expected Hamming loss",
    "box_f1": "F1 at IoU .5",
    "box_precision": "precision at IoU .5",
    "box_recall": "recall at IoU .5",
    "box_f1_75": "F1 at IoU .75",
    "box_precision_75": "precision at IoU .75",
    "box_recall_75": "recall at IoU .75",
    "mean_iou": "mean IoU",
    "precision_expected": "expected precision",
    "matched_accuracy": "matched accuracy",
    "adjusted_rand_index": "adjusted Rand index",
    "word_accuracy": "word accuracy",
    "word_error_rate": "WER",
    "character_error_rate": "CER",
    "exact_texts": "exact texts",
    "iou": "IoU",
    "dice": "Dice",
    "boundary_f": "boundary F",
    "iou_expected": "expected IoU",
}


def spread_confidence(
    labels: NDArray[Any], confidence: NDArray[np.float64], classes: NDArray[Any]
) -> NDArray[np.float64]:
    """Return probabilities that put ``confidence`` on the label and spread the rest evenly."""
    n, size = len(labels), len(classes)
    codes = lookup(labels, classes)
    rest = (1 - confidence) / max(size - 1, 1)
    table = np.repeat(rest[:, None], size, axis=1)
    table[np.arange(n), codes] = confidence if size > 1 else 1.0
    return table
