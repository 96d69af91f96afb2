"""Does a loss fit the wrong labels? What is predicted for training rows whose label is wrong."""

from lossmith.report.elements import figure, legend
from lossmith.report.line_panels import Axis, line_panels
from lossmith.report.section import Section
from lossmith.report.sections.learning_curves import curve_panels
from lossmith.report.subject import Subject
from lossmith.report.svg import element


def section(subject: Subject) -> Section | None:
    """Return two rows of panels: share predicted as the true class, and as the wrong label."""
    right = curve_panels(subject, "false_label_accuracy", subject.noisy)
    wrong = curve_panels(subject, "memorised", subject.noisy)
    if not right or not wrong:
        return None
    body = (
        element("h3", "Seen through: predicted as their true class")
        + line_panels(right, Axis("epoch"), Axis.share("true class"))
        + element("h3", "Memorised: predicted as the wrong label they carry")
        + line_panels(wrong, Axis("epoch"), Axis.share("wrong label"))
    )
    lead = "The training rows whose label was made wrong. A robust loss predicts what they are; one that memorises, their label."
    caption = "Mean over seeds; bands are ± one standard error."
    return Section("false-labels", "Wrong labels", lead, figure(body, caption, key="false-labels", before=legend(subject.series)))
