"""Hidden tag chains: evidence of labels, forward-backward, counts and the best path."""
