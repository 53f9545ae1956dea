"""Numbers on a scale."""
