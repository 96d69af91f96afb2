"""The file of a study: what it holds, and how it is read back."""
