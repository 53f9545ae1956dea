"""Methods of moments: joint label tables of few workers, and estimates from them."""
