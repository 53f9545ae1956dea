"""The names of scores in tables, and probabilities from a confidence alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.ids.encoding import lookup

HEADINGS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro F1",
    "log_loss": "log loss",
    "brier_score": "Brier score",
    "expected_calibration_error": "ECE",
    "r2": "R²",
    "rmse": "RMSE",
    "mean_absolute_error": "MAE",
    "correlation": "correlation",
    "coverage": "in 95% interval",
    "kendall_tau": "Kendall τ",
    "pair_accuracy": "pair accuracy",
    "held_out_score": "held-out score",
    "standard_error": "± SE",
    "accuracy_expected": "expected accuracy",
    "expected_error": "expected error",
    "cpu_seconds": "CPU seconds",
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
