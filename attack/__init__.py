"""What tries to break Lossmith: kills, damaged files, and input that nobody would write. ``python -m attack``."""
