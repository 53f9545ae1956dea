"""Belief propagation over discrete noise levels: messages from tasks to workers."""
