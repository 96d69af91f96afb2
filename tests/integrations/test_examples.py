"""The examples of trainers that are packages of their own, at a small size."""

import importlib.util
import sys
from pathlib import Path

import pytest

from lossmith.studies import open_study

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("example", "needs"),
    [("own_training_lightning", ["lightning"]), ("own_training_transformers", ["transformers", "accelerate"])],
)
@pytest.mark.filterwarnings("ignore")  # of packages that are not ours
def test_examples_run(tmp_path, monkeypatch, capsys, example, needs):
    for package in needs:
        pytest.importorskip(package, reason=f"needs {package}")
    spec = importlib.util.spec_from_file_location(example, EXAMPLES / f"{example}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, example, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(sys, "argv", [example, "--quick", "--output", str(tmp_path / "study")])
    module.main()
    assert "Stay with ce" in capsys.readouterr().out
    assert not open_study(tmp_path / "study").results.untrained.str.startswith("failed").any()
