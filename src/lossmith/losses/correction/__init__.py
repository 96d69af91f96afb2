"""Losses that are corrected for labels of which it is known what is taken for what."""
