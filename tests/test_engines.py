"""Trials of several processes, and where a study is trained."""

import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

import lossmith
from lossmith.command_line import main
from lossmith.studies import open_study
from lossmith.training.engines.workplace import Workplace
from lossmith.training.own.trial import Trial


def together(trial: Trial) -> dict[str, float] | None:
    """What two processes add up, told by the first."""
    dist.init_process_group("gloo")
    total = torch.tensor(float(dist.get_rank() + 1))
    dist.all_reduce(total)
    if trial.name == "gce" and dist.get_rank() == 1:
        raise ValueError("the second process has no memory")
    if trial.name == "mae":
        dist.barrier()
        trial.report(1, accuracy=0.3)
        trial.report(2, accuracy=0.4)
    dist.destroy_process_group()
    return {"accuracy": float(total) / 4} if trial.name != "gce" else None


@pytest.mark.parametrize("workers", [1, 2])
def test_a_trial_of_two_processes(tmp_path: Path, workers: int) -> None:
    study = lossmith.compare(
        train=together,
        losses=["ce", "gce", "mae"],
        noise=[0],
        seeds=1,
        epochs=2,
        processes=2,
        workers=workers,
        output=tmp_path / "study",
        progress=False,
    )
    results = study.results.set_index("loss")
    assert results.accuracy["ce"] == results.accuracy["mae"] == 0.75
    assert "failed: ValueError: the second process has no memory" in results.untrained["gce"]
    assert study.curves.query("loss == 'mae'").validation_accuracy.tolist() == [0.3, 0.4]
    assert "--processes 2" in open_study(tmp_path / "study").provenance["command"]


def test_processes_belong_to_a_function() -> None:
    with pytest.raises(ValueError, match="processes needs a training function of your own, got 2 without one"):
        lossmith.compare("digits", processes=2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"engine": "rai"}, "engine must be one of local, ray, got 'rai'; did you mean 'ray'?"),
        ({"ray_address": "head:6379"}, "ray_address needs engine 'ray', got 'local'"),
        ({"engine": "ray", "ray_address": 7}, "ray_address must be text"),
        ({"trial_cpus": 0}, "trial_cpus must be"),
        ({"trial_gpus": 0}, "trial_gpus must be"),
    ],
)
def test_places_that_cannot_be(given: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("?", r"\?")):
        Workplace(**given)  # type: ignore[arg-type]


def test_ray_that_is_not_installed_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "lossmith.training.engines.ray_engine", raising=False)
    assert main(["compare", "digits", "--engine", "ray"]) == 2
    assert capsys.readouterr().err == "lossmith: engine 'ray' needs Ray: pip install 'lossmith[cluster]'.\n"
    with pytest.raises(ModuleNotFoundError, match="needs Ray: pip install"):
        lossmith.compare("digits", engine="ray")


def test_a_file_says_where_to_train(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "study.toml"
    file.write_text('data = "digits"\nlosses = ["ce"]\nworkers = 1\ndevice = "gpu"\n')
    assert main(["compare", str(file)]) == 2
    assert "device must be auto, cpu, cuda, cuda:N or mps, got 'gpu'" in capsys.readouterr().err
    file.write_text(
        'data = "digits"\nlosses = ["ce"]\nepochs = 1\nrows = 100\nreferences = false\nengine = "local"\ndevice = "cpu"\n'
    )
    assert main(["compare", str(file), "--dry-run"]) == 0
