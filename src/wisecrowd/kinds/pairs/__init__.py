"""Votes on two items."""
