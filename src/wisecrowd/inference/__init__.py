"""Iterative inference: the loop, its monitor, worker priors and starting points."""
