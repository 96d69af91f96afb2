"""Studies sent to the real trackers, and read back from where they keep them."""

import json
import warnings

import pytest

import lossmith
from lossmith.studies.tracking import tracking

SMALL = {"losses": ["ce", "gce"], "noise": [0.2], "seeds": 2, "rates": [0.1], "epochs": 3, "rows": 300, "references": False}


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    monkeypatch.setattr(tracking, "_PATIENCE", 600.0)  # what a client takes on a busy machine is not ours


def compared(folder, track, capsys):
    study = lossmith.compare("digits", output=folder, track=track, workers=1, **SMALL)
    assert "track:" not in capsys.readouterr().err  # where a failure would be said
    return study


def test_mlflow(tmp_path, monkeypatch, capsys):
    mlflow = pytest.importorskip("mlflow", reason="mlflow-skinny is installed by make test-integrations")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # newer clients ask
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # file stores are on their way out, which is not ours to tell
        study = compared(tmp_path / "study", "mlflow", capsys)
        client = mlflow.MlflowClient()
        experiment = client.get_experiment_by_name("lossmith")
        found = client.search_runs([experiment.experiment_id])
        (parent,) = (run for run in found if "mlflow.parentRunId" not in run.data.tags)
        children = [run for run in found if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
        history = client.get_metric_history(children[0].info.run_id, "curve/train_loss")
        artifacts = [file.path for file in client.list_artifacts(parent.info.run_id)]
    assert (parent.info.status, parent.data.params["epochs"], parent.data.params["losses"]) == ("FINISHED", "3", "('ce', 'gce')")
    assert parent.data.tags["mlflow.note.content"] == str(study.recommend())
    assert artifacts == ["report.html"]
    last = study.results.query("loss == 'gce' and seed == 1").accuracy.item()
    assert parent.data.metrics["symmetric-0.2-/gce/accuracy"] == pytest.approx(last)
    assert sorted(run.data.metrics["accuracy"] for run in children) == pytest.approx(sorted(study.results.accuracy))
    assert {run.data.params["learning_rate"] for run in children} == {"0.1"}
    assert [point.step for point in history] == [1, 2, 3]


def test_tensorboard(tmp_path, capsys):
    pytest.importorskip("tensorboard", reason="tensorboard is installed by make test-integrations")
    from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer

    study = compared(tmp_path / "study", "tensorboard", capsys)
    events = EventMultiplexer().AddRunsFromDirectory(str(tmp_path / "study" / "tensorboard")).Reload()
    runs = events.Runs()
    assert set(runs) == {".", *(f"symmetric(0.2)/{loss}/seed-{seed}-trial-1" for loss in ("ce", "gce") for seed in (0, 1))}
    for row in study.results.itertuples():
        run = f"symmetric(0.2)/{row.loss}/seed-{row.seed}-trial-1"
        assert [point.step for point in events.Scalars(run, "curve/train_loss")] == [1, 2, 3]
        assert events.Scalars(run, "accuracy")[0].value == pytest.approx(row.accuracy)
        counted = events.Scalars(".", f"symmetric(0.2)/{row.loss}/accuracy")
        assert counted[row.seed].value == pytest.approx(row.accuracy)
    assert any("answer" in tag for tag in runs["."]["tensors"])


def test_wandb(tmp_path, monkeypatch, capsys):
    pytest.importorskip("wandb", reason="wandb is installed by make test-integrations")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("WANDB_DATA_DIR", str(tmp_path / "data"))
    study = compared(tmp_path / "study", "wandb", capsys)
    kept = sorted((tmp_path / "study" / "wandb").glob("offline-run-*"))
    assert len(kept) == 1 + len(study.results)
    texts = [file.read_bytes() for folder in kept for file in folder.glob("*.wandb")]
    assert sum(b"curve" in text or b"train_loss" in text for text in texts) == len(study.results)
    assert any(json.dumps("symmetric(0.2)").strip('"').encode() in text for text in texts)
    assert any(list(folder.rglob("report*.html")) for folder in kept)
