"""Boxes in images."""
