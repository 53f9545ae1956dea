"""Joint label counts of pairs of workers."""
