"""Sums over comparisons of items by workers."""
