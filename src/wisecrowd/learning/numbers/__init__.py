"""Learning regressions from features and the numbers of a crowd."""
