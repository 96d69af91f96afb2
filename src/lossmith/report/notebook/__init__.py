"""Parts of the report for cells of notebooks."""

from lossmith.report.notebook.views import plot, recommendation_html, study_html, table_html, whole_report

__all__ = ["plot", "recommendation_html", "study_html", "table_html", "whole_report"]
