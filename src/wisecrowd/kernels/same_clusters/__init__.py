"""Clusters from votes on pairs of items: same or different."""
