"""Grouping of boxes into objects."""
