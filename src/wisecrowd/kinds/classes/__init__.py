"""Classes: one of several holds for each task."""
