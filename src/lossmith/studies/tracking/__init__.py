"""Experiment trackers, which are told of runs and results as they finish."""
