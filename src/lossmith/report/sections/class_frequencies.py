"""How well frequent and rare classes are predicted, where classes are uneven."""

from lossmith.report.analysis_sections import measured_table
from lossmith.report.elements import Section, cases, figure
from lossmith.report.subject import Subject
from lossmith.studies.class_frequencies import accuracy_by_frequency, frequency_groups

_UNEVEN = 3
_LEAD = "What a loss gains on rare classes, it may lose on frequent ones. Losses are judged by all of them together."


def section(subject: Subject) -> Section | None:
    """Return a table for each noise level; nothing where the most frequent class has less than three times the rarest."""
    rows = subject.study.class_rows
    if len(rows) < 2 or max(rows) < _UNEVEN * min(rows):
        return None
    groups = frequency_groups(rows)
    bodies = {
        subject.noise_title(noise): measured_table(
            subject,
            "Accuracy on frequent and on rare classes",
            accuracy_by_frequency(subject.study, noise),
            shares=list(groups),
            lower_is_better=False,
        )
        for noise in subject.noises
    }
    words = [f"{name}: {len(classes)} of {_span([rows[label] for label in classes])}" for name, classes in groups.items()]
    caption = f"Mean accuracy of the classes on the test split, ± standard error, by their training rows ({'; '.join(words)})."
    return Section("classes", "Frequent and rare classes", _LEAD, figure(cases("At", bodies, "classes"), caption, key="classes"))


def _span(rows: list[int]) -> str:
    return f"{min(rows)} rows" if min(rows) == max(rows) else f"{min(rows)} to {max(rows)} rows"
