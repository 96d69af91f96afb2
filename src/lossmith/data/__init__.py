"""Data sets, splits and label noise (extra ``experiments``)."""
