"""Command line: options are light to import; what a command does is imported when it runs."""
