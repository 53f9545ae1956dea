"""The data structure, the gate in front of it and the estimator contract; no file access."""
