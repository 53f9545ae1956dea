"""Hashes of ids, which decide the shard of a task in a pack."""
