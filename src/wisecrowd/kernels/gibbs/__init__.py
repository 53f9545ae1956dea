"""Sweeps of the collapsed Gibbs sampler."""
