"""Pages and tables for people (extra ``report``)."""

from typing import TYPE_CHECKING

from lossmith.lazy_names import lazy_names

if TYPE_CHECKING:
    from lossmith.report.elements import *
    from lossmith.report.explore import *
    from lossmith.report.labels.page import *
    from lossmith.report.rank_figure import *
    from lossmith.report.result_tables import *
    from lossmith.report.study_page import *
    from lossmith.report.subject import *

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "elements": ["Section"],
        "explore": ["write_explorer"],
        "labels.page": ["write_inspection"],
        "rank_figure": ["draw_ranking"],
        "result_tables": ["export_results", "latex_table", "markdown_table"],
        "study_page": ["render_report", "write_report"],
        "subject": ["ReportedStudy"],
    },
)
