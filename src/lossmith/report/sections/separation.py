"""How far apart the classes lie in the features."""

import pandas as pd
from markupsafe import Markup

from lossmith.report.analysis_sections import analysis_section, measured_table
from lossmith.report.elements import Section
from lossmith.report.subject import Subject
from lossmith.studies.study_analysis import Analysis

_LEAD = (
    "How far classes lie apart in what the final layer sees: 0 where they are mixed, 1 where each is a point. Kornblith "
    "et al. (2021) found that losses which separate classes more have features that serve other data less."
)
_CAPTION = (
    "Class separation of the test features: 1 less the mean distance within classes over that of all pairs, by three distances. "
    "Not zero: share of the features. Effective rank: in how many directions features vary, and the means of the classes."
)


def section(subject: Subject) -> Section | None:
    """Return a table for each noise level; nothing where features were not kept."""

    def body(analysis: Analysis) -> Markup | None:
        if analysis.separation is None or analysis.features is None:
            return None
        both = pd.concat([analysis.separation, analysis.features], axis=1)
        return measured_table(subject, "Class separation and features", both, shares=["nonzero"])

    return analysis_section(subject, ("separation", "Class separation"), (_LEAD, _CAPTION), body)
