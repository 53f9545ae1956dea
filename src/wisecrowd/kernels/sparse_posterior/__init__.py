"""Votes and one-coin models: a posterior over the labels that a task received."""
