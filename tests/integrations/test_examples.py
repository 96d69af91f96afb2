"""The examples of trainers that are packages of their own, at a small size."""

import importlib.util
import sys
from pathlib import Path

import pytest

from lossmith.studies import open_study

EXAMPLES = Path(__file__).parents[2] / "examples"


def run_quickly(monkeypatch, example, needs, *options):
    for package in needs:
        pytest.importorskip(package, reason=f"needs {package}")
    spec = importlib.util.spec_from_file_location(example, EXAMPLES / f"{example}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, example, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(sys, "argv", [example, "--quick", *options])
    module.main()


@pytest.mark.parametrize(
    ("example", "needs"),
    [("own_training_lightning", ["lightning"]), ("own_training_transformers", ["transformers", "accelerate"])],
)
@pytest.mark.filterwarnings("ignore")  # of packages that are not ours
def test_examples_run(tmp_path, monkeypatch, capsys, example, needs):
    run_quickly(monkeypatch, example, needs, "--output", str(tmp_path / "study"))
    assert "Stay with ce" in capsys.readouterr().out
    assert not open_study(tmp_path / "study").results.untrained.str.startswith("failed").any()


@pytest.mark.filterwarnings("ignore")
def test_a_language_model_learns_through_the_fused_layer(monkeypatch, capsys):
    run_quickly(monkeypatch, "language_model", ["transformers"], "--losses", "ce", "gce(q=0.3)")
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines() if "%" in line and line.startswith("|")]
    assert [row[1].strip() for row in rows] == ["nothing", "ce", "gce(q=0.3)"]
    before, *after = (float(row[3]) for row in rows)
    assert before < 6.6  # log(800) is 6.7
    assert max(after) < before
