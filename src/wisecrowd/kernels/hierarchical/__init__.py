"""Confusion matrices shrunk to a population, each label judged without its own contribution."""
