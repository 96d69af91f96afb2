"""Comparisons of losses on data: plan, train, store, compare (extra ``experiments``)."""
