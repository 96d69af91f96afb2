"""How well predictions bear damaged inputs."""

from markupsafe import Markup

from lossmith.report.analysis_sections import analysis_section, measured_table
from lossmith.report.elements import Section
from lossmith.report.subject import Subject
from lossmith.studies.study_analysis import Analysis

_LEAD = "Errors on test inputs that were damaged after training, in ways that no model has seen."


def section(subject: Subject) -> Section | None:
    """Return a table for each noise level; nothing where weights were not kept."""

    def body(analysis: Analysis) -> Markup | None:
        if analysis.corruption is None:
            return None
        shares = [name for name in analysis.corruption.columns.unique(0) if name != "relative"]
        return measured_table(subject, "Error rates on damaged inputs", analysis.corruption, shares=shares, lower_is_better=True)

    caption = (
        "Error rates averaged over five severities, on some test rows of some replicates. Relative is the mean corruption error: "
        f"errors over those of {subject.baseline}, averaged over the kinds of damage; below 1 is more robust."
    )
    return analysis_section(subject, ("corruption", "Damaged inputs"), (_LEAD, caption), body)
