"""CPU time and memory of fits, reading and start-up, beside other libraries."""
