"""Numbers with a bias and a noise per worker: E-steps and task medians."""
