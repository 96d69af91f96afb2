"""An analysis in words, as the terminal and the report name its parts."""

from math import isnan

import pandas as pd

from lossmith.studies.findings import Analysis

__all__ = ["analysis_text", "measure_title", "number_and_error"]

_TITLES = {
    "nll": "NLL",
    "ece": "ECE",
    "scaled_nll": "NLL, scaled",
    "scaled_ece": "ECE, scaled",
    "nonzero": "not zero",
    "rank": "effective rank",
    "centroid_rank": "rank of centroids",
    "own": "own classifier",
    "relearned": "learned again",
    "relative": "relative",
}


def measure_title(measure: str) -> str:
    """Return the heading of a column.

    >>> measure_title("scaled_nll"), measure_title("gaussian-noise")
    ('NLL, scaled', 'gaussian noise')
    """
    return _TITLES.get(measure, measure.replace("-", " "))


def number_and_error(mean: float, error: float, sign: str = "+-") -> str:
    """Return a mean with its standard error, if there is one.

    >>> number_and_error(0.9123, 0.0011), number_and_error(0.9123, float("nan"))
    ('0.912 +- 0.001', '0.912')
    """
    return f"{mean:.3f}" if isnan(error) else f"{mean:.3f} {sign} {error:.3f}"


def analysis_text(analysis: Analysis) -> str:
    """Return the tables of an analysis for the terminal."""
    titled = {
        "Calibration, before and after temperature scaling": analysis.calibration,
        "Class separation of the features, by distance": analysis.separation,
        "Features": analysis.features,
        "Accuracy of logistic regression on the features": analysis.transfer,
        "Error rates on damaged inputs, and their mean relative to the baseline": analysis.corruption,
    }
    tables = [f"{title}\n{_measured(table)}" for title, table in titled.items() if table is not None]
    if analysis.brackets:  # more than one run
        agreement = analysis.agreement["same_prediction"].round(3).to_string(na_rep="")
        tables.append(f"Share of test rows for which two runs predict the same, by loss\n{agreement}")
    return "\n\n".join([f"Label noise: {analysis.noise}", *tables, *analysis.notes])


def _measured(table: pd.DataFrame) -> str:
    measures = [name for name in table.columns.unique(0) if name != "runs"]
    written = {
        measure_title(name): [
            number_and_error(mean, error) for mean, error in zip(table[name]["mean"], table[name]["se"], strict=True)
        ]
        for name in measures
    }
    return str(pd.DataFrame(written, table.index.rename(None)).to_string())
