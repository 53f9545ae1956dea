"""Methods that learn sets of classes from features and a crowd."""
