"""Sum-product messages between tasks and workers."""
