"""Data structures, input validation and the estimator contract; no file access."""
