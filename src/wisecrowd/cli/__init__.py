"""The command line: one file per command, and nothing heavy until a command runs."""
