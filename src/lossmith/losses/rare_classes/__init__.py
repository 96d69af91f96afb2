"""Losses that know how many training rows each class has, and weights by that."""
