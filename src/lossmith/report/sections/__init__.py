"""The sections of a report, a module each; its function ``section(subject)`` returns None where there is nothing to show."""

from collections.abc import Callable

from lossmith.report.elements import Section
from lossmith.report.sections import (
    class_frequencies,
    confusion,
    cost,
    differences,
    learning_curves,
    learning_rates,
    noise_levels,
    provenance,
    reliability,
    results,
    tuning,
)
from lossmith.report.sections.analysed import agreement, analysis_tables, layer_similarity
from lossmith.report.subject import Subject

__all__ = ["PROVENANCE", "SECTIONS", "SectionMaker"]

SectionMaker = Callable[[Subject], Section | None]

SECTIONS: dict[str, SectionMaker] = {
    "results": results.section,
    "differences": differences.section,
    "classes": class_frequencies.section,
    "tuning": tuning.section,
    "noise": noise_levels.section,
    "rates": learning_rates.section,
    "curves": learning_curves.section,
    "false-labels": learning_curves.false_label_section,
    "calibration": reliability.section,
    "temperature": analysis_tables.temperature_section,
    "confusion": confusion.section,
    "agreement": agreement.section,
    "separation": analysis_tables.separation_section,
    "transfer": analysis_tables.transfer_section,
    "layers": layer_similarity.section,
    "corruption": analysis_tables.corruption_section,
    "cost": cost.section,
}
"""What comes below the answer, in order, by the name that links to it have."""

PROVENANCE: SectionMaker = provenance.section
"""What was run and how to run it again; the last on the page."""
