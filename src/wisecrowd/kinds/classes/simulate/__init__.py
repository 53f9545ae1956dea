"""Populations of workers who label classes, and crowds of them."""
