"""What several methods share: one module per kind of model."""
