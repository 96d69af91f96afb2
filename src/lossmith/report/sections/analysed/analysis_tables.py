"""What an analysis measured, a table of losses each: calibration after scaling, separation, transfer, damaged inputs."""

import pandas as pd
from markupsafe import Markup

from lossmith.report.analysis_sections import analysis_section, measured_table
from lossmith.report.elements import Section
from lossmith.report.subject import Subject
from lossmith.report.svg import element
from lossmith.studies.study_analysis import Analysis

__all__ = ["corruption_section", "separation_section", "temperature_section", "transfer_section"]

_TEMPERATURE_ORDER = ["nll", "scaled_nll", "ece", "scaled_ece", "temperature"]
_TEMPERATURE_LEAD = (
    "How much of the lack of calibration one number can mend: logits divided by the temperature that makes labels likeliest."
)
_TEMPERATURE_CAPTION = (
    "Negative log-likelihood and expected calibration error on the test split, mean ± standard error over the runs. Each fifth "
    "of the rows is scaled by the temperature that is best for the others. A temperature above 1 makes a model less sure."
)


def temperature_section(subject: Subject) -> Section | None:
    """Return a table for each noise level, and what the analysis had to leave out; nothing where none was made."""

    def body(analysis: Analysis) -> Markup:
        table = measured_table(
            subject, "Calibration before and after temperature scaling", analysis.calibration[_TEMPERATURE_ORDER]
        )
        return Markup().join([table, *(element("p", note, class_="note") for note in analysis.notes)])

    return analysis_section(
        subject, ("temperature", "Calibration after scaling"), (_TEMPERATURE_LEAD, _TEMPERATURE_CAPTION), body
    )


_SEPARATION_LEAD = (
    "How far classes lie apart in what the final layer sees: 0 where they are mixed, 1 where each is a point. Kornblith "
    "et al. (2021) found that losses which separate classes more have features that serve other data less."
)
_SEPARATION_CAPTION = (
    "Class separation of the test features: 1 less the mean distance within classes over that of all pairs, by three distances. "
    "Not zero: share of the features. Effective rank: in how many directions features vary, and the means of the classes."
)


def separation_section(subject: Subject) -> Section | None:
    """Return a table for each noise level; nothing where features were not kept."""

    def body(analysis: Analysis) -> Markup | None:
        if analysis.separation is None or analysis.features is None:
            return None
        both = pd.concat([analysis.separation, analysis.features], axis=1)
        return measured_table(subject, "Class separation and features", both, shares=["nonzero"])

    return analysis_section(subject, ("separation", "Class separation"), (_SEPARATION_LEAD, _SEPARATION_CAPTION), body)


_TRANSFER_LEAD = "What another final layer can make of the features, and what they are worth to data that the networks never saw."
_TRANSFER_CAPTION = (
    "Accuracy of L2-regularised logistic regression on frozen features. Learned again: on the true labels of half of the test "
    "rows, judged by the other half, beside the network's own classifier on the same rows. Other data likewise, if asked for."
)


def transfer_section(subject: Subject) -> Section | None:
    """Return a table for each noise level; nothing where features were not kept."""

    def body(analysis: Analysis) -> Markup | None:
        if analysis.transfer is None:
            return None
        shares = list(analysis.transfer.columns.unique(0))
        return measured_table(subject, "Accuracy on the features", analysis.transfer, shares=shares, lower_is_better=False)

    return analysis_section(subject, ("transfer", "Transfer"), (_TRANSFER_LEAD, _TRANSFER_CAPTION), body)


_CORRUPTION_LEAD = "Errors on test inputs that were damaged after training, in ways that no model has seen."


def corruption_section(subject: Subject) -> Section | None:
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
    return analysis_section(subject, ("corruption", "Damaged inputs"), (_CORRUPTION_LEAD, caption), body)
