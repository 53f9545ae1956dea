"""Measurements of speed, memory and accuracy; ``make bench`` runs them all and prints one table."""
