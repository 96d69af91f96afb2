"""Calibration before and after temperature scaling."""

from markupsafe import Markup

from lossmith.report.analysis_sections import analysis_section, measured_table
from lossmith.report.elements import Section
from lossmith.report.subject import Subject
from lossmith.report.svg import element
from lossmith.studies.study_analysis import Analysis

_ORDER = ["nll", "scaled_nll", "ece", "scaled_ece", "temperature"]
_LEAD = "How much of the lack of calibration one number can mend: logits divided by the temperature that makes labels likeliest."
_CAPTION = (
    "Negative log-likelihood and expected calibration error on the test split, mean ± standard error over the runs. Each fifth "
    "of the rows is scaled by the temperature that is best for the others. A temperature above 1 makes a model less sure."
)


def section(subject: Subject) -> Section | None:
    """Return a table for each noise level, and what the analysis had to leave out; nothing where none was made."""

    def body(analysis: Analysis) -> Markup:
        table = measured_table(subject, "Calibration before and after temperature scaling", analysis.calibration[_ORDER])
        return Markup().join([table, *(element("p", note, class_="note") for note in analysis.notes)])

    return analysis_section(subject, ("temperature", "Calibration after scaling"), (_LEAD, _CAPTION), body)
