"""Classes in an order, such as grades."""
