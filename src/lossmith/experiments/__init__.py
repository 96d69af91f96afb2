"""Comparisons of losses on data: plan, train, store, compare (extra ``experiments``)."""

from lossmith.experiments.beginning import compare
from lossmith.experiments.study import Study, open_study

__all__ = ["Study", "compare", "open_study"]
