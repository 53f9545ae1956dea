"""Model families: the code that several methods share, one module per kind of model."""
