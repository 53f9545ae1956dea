"""Masks of images: which pixels show something."""
