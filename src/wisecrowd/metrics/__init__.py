"""Metrics of labels, numbers, probabilities and worker estimates, as plain functions on arrays.

The true values come first where the order of arguments matters (``truth, predicted``), and
estimates first where a recovered quantity is compared with the true one (``estimate, truth``).
"""

from wisecrowd.kinds.classes.metrics.agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha
from wisecrowd.kinds.classes.metrics.classification import (
    accuracy,
    balanced_accuracy,
    brier_score,
    expected_calibration_error,
    fractional_accuracy,
    log_loss,
    macro_f1,
    top_k_accuracy,
    top_k_f1,
)
from wisecrowd.kinds.classes.metrics.worker_recovery import (
    confusion_error,
    confusion_total_variation,
    match_classes,
    worker_rank_correlation,
)
from wisecrowd.kinds.numbers.metrics import (
    correlation,
    coverage,
    mean_absolute_error,
    r2_score,
    rmse,
)
from wisecrowd.kinds.ordered.metrics import ordinal_mean_absolute_error, quadratic_weighted_kappa
from wisecrowd.kinds.pairs.metrics import kendall_tau, pair_accuracy, vote_accuracy, vote_log_loss
from wisecrowd.kinds.sets.metrics import masi_distance

__all__ = [
    "accuracy", "balanced_accuracy", "brier_score", "cohen_kappa", "confusion_error",
    "confusion_total_variation", "correlation", "coverage", "expected_calibration_error",
    "fleiss_kappa", "fractional_accuracy", "kendall_tau", "krippendorff_alpha", "log_loss",
    "macro_f1", "masi_distance", "match_classes", "mean_absolute_error",
    "ordinal_mean_absolute_error", "pair_accuracy", "quadratic_weighted_kappa", "r2_score", "rmse",
    "top_k_accuracy", "top_k_f1", "vote_accuracy", "vote_log_loss", "worker_rank_correlation",
]  # fmt: skip
