"""E-step and expected counts of models with a confusion matrix per worker."""
