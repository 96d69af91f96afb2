"""Formulas of rows whose classes are spread over processes: each holds the logits of some classes, and none holds all."""
