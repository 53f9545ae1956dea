"""Command line: one file per command; heavy imports wait until a command runs."""
