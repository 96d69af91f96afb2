"""Losses with one yes or no for every class, of which several can be true at once."""
