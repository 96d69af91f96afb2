"""Benchmarks: ratios to a rival in the same run, printed as Markdown tables. None of them is a test."""
