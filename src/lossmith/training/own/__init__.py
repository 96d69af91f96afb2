"""Training functions that users bring."""
