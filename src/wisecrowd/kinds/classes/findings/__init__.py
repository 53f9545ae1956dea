"""Checks of labels and fits that run with every fit and return findings."""
