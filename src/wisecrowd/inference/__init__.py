"""Iterative inference: the loop, the engine in memory, the monitor, and priors of workers."""
