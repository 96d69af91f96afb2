"""Wrong labels of every kind, by name."""
