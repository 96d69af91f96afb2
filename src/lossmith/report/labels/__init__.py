"""The page on which suspect labels are looked through."""
