"""Metrics of labels, probabilities and worker estimates."""
