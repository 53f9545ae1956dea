"""Script for spark-submit, in a folder of its own: Python puts it first on the module path."""
