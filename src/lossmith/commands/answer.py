"""What ``compare`` and ``resume`` do and print."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lossmith.experiments.comparison import Comparison
    from lossmith.experiments.study import Study

__all__ = ["train_and_answer"]


def train_and_answer(comparison: "Comparison", *, report: bool = True) -> None:
    """Train what is missing of a study, then print its table and recommendation, and write its report."""
    from lossmith.experiments.progress import progress_display

    with progress_display() as display:
        for note in comparison.notes():
            display.note(f"{comparison.data.name}: {note}")
        study = comparison.train(display)
    print(_tables(study))
    print()
    print(study.recommend())
    print()
    print(f"Study: {study.folder}")
    if report:
        from lossmith.report import write_report

        print(f"Report: {write_report(study)}")


def _tables(study: "Study") -> str:
    heading = "Accuracy on the test split, mean +- standard error over the seeds, by label noise in training"
    return f"{heading}\n{study.table().fillna('').rename_axis(index=None, columns=None).to_string()}"
