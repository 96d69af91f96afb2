"""The page of ``lossmith explore``: every loss, its gradient and its average error, to play with in a browser."""

from lossmith.report.explore.page import write_explorer

__all__ = ["write_explorer"]
