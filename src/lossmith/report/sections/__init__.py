"""The sections of a report, a module each; its function ``section(subject)`` returns None where there is nothing to show."""

from collections.abc import Callable

from lossmith.report.elements import Section
from lossmith.report.sections import (
    agreement,
    analysis_tables,
    confusion,
    cost,
    differences,
    layer_similarity,
    learning_curves,
    learning_rates,
    noise_levels,
    provenance,
    reliability,
    results,
    tuning,
)
from lossmith.report.subject import Subject

__all__ = ["PROVENANCE", "SECTIONS", "SectionMaker"]

SectionMaker = Callable[[Subject], Section | None]

SECTIONS: tuple[SectionMaker, ...] = (
    results.section,
    differences.section,
    tuning.section,
    noise_levels.section,
    learning_rates.section,
    learning_curves.section,
    learning_curves.false_label_section,
    reliability.section,
    analysis_tables.temperature_section,
    confusion.section,
    agreement.section,
    analysis_tables.separation_section,
    analysis_tables.transfer_section,
    layer_similarity.section,
    analysis_tables.corruption_section,
    cost.section,
)
"""What comes below the answer, in order."""

PROVENANCE: SectionMaker = provenance.section
"""What was run and how to run it again; the last on the page."""
