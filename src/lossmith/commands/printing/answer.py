"""What ``compare``, ``resume`` and ``analyse`` do and print."""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lossmith.statistics.recommendation import Recommendation
    from lossmith.studies.comparison import Comparison
    from lossmith.studies.study import Study

__all__ = ["analyse_and_print", "say_what_is_not_sure", "train_and_answer"]


def train_and_answer(comparison: "Comparison", *, report: bool = True, analyse: bool = False, device: str = "auto") -> None:
    """Train what is missing of a study, then print its table and recommendation, analyse it if asked to, and write its report."""
    from lossmith.studies.progress import progress_display

    with progress_display() as display:
        for note in comparison.notes():
            display.note(f"{comparison.name}: {note}")
        study = comparison.train(display)
    say_what_is_not_sure(study)
    print(_tables(study))
    print()
    print(_with_headline(study.recommend()))
    _say_what_labels_allow(study)
    print()
    if analyse:
        analyse_and_print(study, device=device)
    print(f"Study: {study.folder}")
    if report:
        from lossmith.report import write_report

        print(f"Report: {write_report(study)}")


def _say_what_labels_allow(study: "Study") -> None:
    """Say what accuracy means where some of the labels that losses are judged by seem to be wrong themselves."""
    import textwrap

    from lossmith.studies.labels.of_study import note_on_labels

    if note := note_on_labels(study):
        print("\n".join(textwrap.wrap(f"Labels: {note} lossmith inspect {study.folder} lists them.", 100)))


def say_what_is_not_sure(study: "Study") -> None:
    """Say first of all that results are not final or not sure; apart from them, as they may be read by a program."""
    for sentence in filter(None, (study.unfinished, study.caution)):
        print(f"{study.folder}: {sentence}", file=sys.stderr)


def analyse_and_print(study: "Study", **how: Any) -> None:
    """Analyse a study with progress, and print its tables."""
    from lossmith.studies.progress import progress_display
    from lossmith.studies.study_analysis import analyse
    from lossmith.studies.study_analysis.analysis_text import analysis_text

    with progress_display() as display:
        found = analyse(study, display=display, **how)
    for analysis in found.values():
        print(f"{analysis_text(analysis)}\n")


def _with_headline(answer: "Recommendation") -> str:
    """Return the answer, its first words in bold where a terminal shows that."""
    from lossmith.commands.printing.colour import painted

    return str(answer).replace(answer.headline, painted(answer.headline, "bold"), 1)


def _tables(study: "Study") -> str:
    from lossmith.commands.printing.result_table import result_table

    return result_table(study)
