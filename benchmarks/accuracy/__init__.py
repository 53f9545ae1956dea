"""Accuracy on real and simulated crowds, for inference, learning and the audit."""
