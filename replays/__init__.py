"""Published experiments, run again; each prints a table and saves a figure."""
