"""Methods of moments: joint tables of few workers, and what is estimated from them."""
