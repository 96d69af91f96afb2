"""The command that measures how well wrong labels are counted and found, on small data."""

import sys
from dataclasses import replace

import pandas as pd
import pytest

from evidence import labels
from evidence.label_models import Classical, Networks
from lossmith import load_data

LINE = {"wrong": 0.2, "estimate": 0.21, "low": 0.15, "high": 0.25, "confident": 0.3, "area": 0.9, "confident_area": 0.8}
ACCURACIES = {"given": 0.8, "removed": 0.85, "corrected": 0.86, "confident_removed": 0.84, "true": 0.9}


@pytest.mark.parametrize("models", [Networks("tabular", epochs=3), Classical()])
def test_what_is_measured(models):
    data = load_data("iris", test_share=0.25, validation_share=0.0)
    found = labels.inspected(replace(data, validation=data.train[:0]), "symmetric(0.2)", models)
    assert found.keys() == {*LINE, *ACCURACIES}
    assert found["wrong"] == pytest.approx(0.2, abs=0.01)
    assert found["low"] <= found["estimate"] <= found["high"]
    assert all(0 <= value <= 1 for value in found.values())


def test_means_and_what_is_left_to_do(tmp_path, monkeypatch, capsys):
    lines = pd.DataFrame(
        [
            {"by": "networks", "set": "iris", "noise": "pair(0.2)", **LINE, **ACCURACIES},
            {"by": "networks", "set": "wine", "noise": "pair(0.2)", **LINE, **ACCURACIES, "estimate": 0.28},
        ]
    )
    means = labels.summary(lines)
    assert means.loc["pair(0.2)", "error of the estimate"] == pytest.approx(4.5)
    assert means.loc["all", "error of the confident"] == pytest.approx(10.0)
    assert means.loc["all", "estimate within 3"] == 50.0
    assert means.loc["all", "in the interval"] == 100.0
    lines.to_csv(tmp_path / "inspected.csv", index=False)
    monkeypatch.setattr(sys, "argv", ["labels", "--results", str(tmp_path), "--no-training"])
    labels.main()
    assert "| all | 4.5 | 10.0 |" in " ".join(capsys.readouterr().out.split())
    assert list(labels._missing(lines, "networks", ["iris", "digits"], ["pair(0.2)"])) == [("digits", "pair(0.2)")]
