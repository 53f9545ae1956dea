"""Checks of labels and fits: what every fit looks for, as findings with a remedy."""
