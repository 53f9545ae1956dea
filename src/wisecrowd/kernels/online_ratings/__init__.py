"""Ratings that are updated vote by vote."""
