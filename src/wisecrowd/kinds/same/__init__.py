"""Votes on whether two items are the same."""
