"""Sets of labels: several may hold for a task."""
