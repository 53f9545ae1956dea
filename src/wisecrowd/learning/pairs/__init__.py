"""Learning rewards from comparisons of items with features."""
