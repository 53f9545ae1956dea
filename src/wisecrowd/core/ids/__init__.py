"""Ids of tasks, workers and classes: encoded as integers, sorted, and checked for look-alikes."""
