"""Orders of several items."""
