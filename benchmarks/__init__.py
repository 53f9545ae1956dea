"""Measurements of speed, accuracy, trust and tests, one folder each.

``make bench`` runs those of speed and accuracy and prints one table; ``make trust`` and
``make mutation`` run the others.
"""
