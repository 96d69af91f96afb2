"""Random k-element subsets of a row: sums over all of them, and how likely an element is in one."""
