"""Packs: shards of labels on disk, and the engines that fit methods to them, also with Spark.

What a pack holds of a kind, the kind says itself: see :mod:`wisecrowd.packs.kind`. Packs are made,
and read into memory, by :mod:`wisecrowd.io`.
"""
