"""Kernels of methods for classes: of each family a file in NumPy, and one that is compiled."""
