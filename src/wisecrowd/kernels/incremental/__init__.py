"""Incremental EM: one answer at a time."""
