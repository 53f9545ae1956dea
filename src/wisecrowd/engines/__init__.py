"""Engines that run the local steps: in memory now, with a contract for files and clusters."""
