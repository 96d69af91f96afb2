"""Random k-element subsets of rows on a processor."""
