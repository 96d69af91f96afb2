"""What else the features are good for."""

from markupsafe import Markup

from lossmith.report.analysis_sections import analysis_section, measured_table
from lossmith.report.elements import Section
from lossmith.report.subject import Subject
from lossmith.studies.study_analysis import Analysis

_LEAD = "What another final layer can make of the features, and what they are worth to data that the networks never saw."
_CAPTION = (
    "Accuracy of L2-regularised logistic regression on frozen features. Learned again: on the true labels of half of the test "
    "rows, judged by the other half, beside the network's own classifier on the same rows. Other data likewise, if asked for."
)


def section(subject: Subject) -> Section | None:
    """Return a table for each noise level; nothing where features were not kept."""

    def body(analysis: Analysis) -> Markup | None:
        if analysis.transfer is None:
            return None
        shares = list(analysis.transfer.columns.unique(0))
        return measured_table(subject, "Accuracy on the features", analysis.transfer, shares=shares, lower_is_better=False)

    return analysis_section(subject, ("transfer", "Transfer"), (_LEAD, _CAPTION), body)
