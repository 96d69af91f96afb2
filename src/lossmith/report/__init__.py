"""Pages and tables for people (extra ``report``)."""

from lossmith.report.page import write_report
from lossmith.report.section import Section
from lossmith.report.tables import export_results, latex_table, markdown_table

__all__ = ["Section", "export_results", "latex_table", "markdown_table", "write_report"]
