"""Counts of what goes wrong: bad input, crashes, damaged files, calibration and invariance."""
