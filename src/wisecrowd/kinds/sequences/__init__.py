"""Tags of tokens, and spans."""
