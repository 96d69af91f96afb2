"""Pages and tables for people (extra ``report``)."""

from lossmith.report.page import write_report
from lossmith.report.tables import export_results, latex_table, markdown_table

__all__ = ["export_results", "latex_table", "markdown_table", "write_report"]
