"""Methods for numbers: one file each."""

from __future__ import annotations

# Class name → module. Adding a method is one file and one line here.
LOCATIONS: dict[str, str] = {
    "Mean": "mean",
    "Median": "median",
    "TrimmedMean": "trimmed_mean",
    "GaussianEM": "gaussian_em",
    "StudentEM": "student_em",
    "NumericCRH": "numeric_crh",
    "CATD": "catd",
    "NoiseLevels": "noise_levels",
    "CovarianceRegression": "covariance_regression",
}
