"""Small mistakes in the code, and the share that the tests notice."""
