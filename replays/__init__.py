"""Published experiments, run again; ``python -m replays.NAME`` prints a table and saves a figure."""
