"""Parts that several tests and benchmarks share: input cases, damaged files, faults, relations."""
