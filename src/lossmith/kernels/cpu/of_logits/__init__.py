"""Losses of the logits themselves: of their size, of margins between them, and of each of them alone."""
