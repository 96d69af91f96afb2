"""Losses and wrappers that move, scale or hold back the logits themselves."""
