"""Studies on a Ray cluster of two nodes, both on this machine: the same numbers, and nothing lost whatever dies."""

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'lossmith[cluster]'")
os.environ.setdefault("RAY_worker_niceness", "0")  # a busy machine would leave nothing to Ray's usual 15
os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")
from ray.cluster_utils import Cluster  # noqa: E402 - after what it reads

import lossmith  # noqa: E402
from lossmith.command_line import main  # noqa: E402
from lossmith.studies import Study, open_study  # noqa: E402
from lossmith.training.engines.ray_engine import RayEngine  # noqa: E402
from lossmith.training.own.trial import Trial  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")
CLASSES = 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


def quick(trial: Trial) -> dict[str, Any]:
    """A softmax regression of a few steps."""
    draw = np.random.default_rng(trial.seed)
    labels = torch.arange(60) % CLASSES
    inputs = torch.tensor(draw.normal(size=(60, 4)), dtype=torch.float32) + 2 * torch.eye(CLASSES, 4)[labels]
    noisy, model = trial.labels(labels), nn.Linear(4, CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=trial.settings["learning_rate"])
    for epoch in range(1, trial.settings["epochs"] + 1):
        optimizer.zero_grad()
        trial.loss(model(inputs[:40]), noisy[:40]).backward()
        optimizer.step()
        trial.report(epoch, accuracy=(model(inputs[40:50]).argmax(1) == noisy[40:50]).float().mean())
    return {"logits": model(inputs[50:]), "labels": labels[50:], "train_rows": 50}


def slow(trial: Trial) -> dict[str, Any]:
    """A short trial that says where it was, and on the node that is about to be lost a long one."""
    import ray

    trials, node = trial.folder.parent, ray.get_runtime_context().get_node_id()
    with (trials / "calls").open("a") as file:
        print(node, file=file)
    time.sleep(60 if node == (trials / "doomed").read_text() else 0.3)
    away = abs(math.log10(trial.settings["learning_rate"] / 0.3))  # the best rate is in the middle of those that are tried
    return {"accuracy": 0.5, "validation_accuracy": 1 / (1 + away)}


def by_key(study: Study) -> Any:
    """All that is known of the trials but what depends on the machine, in an order of their own."""
    keys = ["loss", "noise", "seed", "learning_rate", "weight_decay", "parameters", "epochs"]
    return study.trials.drop(columns=["run", "seconds", "memory"], errors="ignore").sort_values(keys, ignore_index=True)


@pytest.mark.parametrize("what", ["own", "built-in"])
def test_the_same_numbers_as_without_ray(cluster: Cluster, tmp_path: Path, what: str) -> None:
    given = {"losses": ["ce", "gce"], "noise": [0.2], "seeds": 2, "trials": 4, "progress": False}
    own = {"train": quick, "tune": {"learning_rate": (0.05, 2.0)}, "epochs": 6}
    given |= own if what == "own" else {"data": "digits", "rows": 200, "epochs": 3}
    local, far = (lossmith.compare(engine=engine, output=tmp_path / engine, **given) for engine in ("local", "ray"))
    assert by_key(local).equals(by_key(far))
    for one, other in zip(*(study.results.sort_values(["loss", "seed"]).run for study in (local, far)), strict=True):
        assert np.array_equal(local.test_logits(int(one)), far.test_logits(int(other)))


def test_a_lost_node_costs_only_its_trials(cluster: Cluster, tmp_path: Path) -> None:
    given = {"losses": ["ce", "gce"], "noise": [0], "seeds": 1, "trials": 8, "tune": {"learning_rate": (0.05, 2.0)}}
    extra = cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    (tmp_path / "study" / "trials").mkdir(parents=True)
    (tmp_path / "study" / "trials" / "doomed").write_text(extra.node_id)
    removed = threading.Thread(target=lose, args=(cluster, extra, tmp_path / "study"))
    removed.start()
    study = lossmith.compare(train=slow, engine="ray", output=tmp_path / "study", progress=False, **given)
    removed.join()
    assert len(study.trials) == 16
    assert (study.results.untrained == "").all()
    assert extra not in cluster.list_all_nodes()
    calls = (tmp_path / "study" / "trials" / "calls").read_text().splitlines()
    assert 16 < len(calls) <= 16 + 2  # what the lost node had in training was trained again


def lose(cluster: Cluster, node: Any, study: Path) -> None:
    """Kill a node as soon as it has a trial."""
    calls = study / "trials" / "calls"
    while not calls.exists() or node.node_id not in calls.read_text():
        time.sleep(0.05)
    cluster.remove_node(node, allow_graceful=False)


def dies_once(trial: Trial) -> dict[str, Any]:
    mark = trial.folder / "died"
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"accuracy": 0.5}


def test_a_killed_worker_costs_only_its_trial(cluster: Cluster, tmp_path: Path) -> None:
    study = lossmith.compare(
        train=dies_once, losses=["ce", "gce"], noise=[0], seeds=1, engine="ray", output=tmp_path / "study", progress=False
    )
    assert (study.results.accuracy == 0.5).all()


SCRIPT = """
import time
from pathlib import Path
from beside import accuracy
def train(trial):
    with open({calls!r}, "a") as file:
        print(trial.name, trial.seed, trial.settings["learning_rate"], file=file)
    time.sleep(0.3)
    return {{"accuracy": accuracy(trial), "validation_accuracy": min(trial.settings["learning_rate"], 1)}}
"""


def test_a_killed_writer_loses_nothing_that_was_finished(cluster: Cluster, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    (tmp_path / "train.py").write_text(SCRIPT.format(calls=str(calls)))
    (tmp_path / "beside.py").write_text("def accuracy(trial):\n    return 0.5\n")
    where = ["--engine", "ray", "--ray-address", cluster.address, "--workers", "2"]
    what = ["--losses", "ce,gce", "--noise", "0", "--seeds", "2", "--tune", "learning_rate=0.1:0.5", "--trials", "4"]
    command = [sys.executable, "-m", "lossmith", "compare", "train.py:train", *what, *where, "--output", "study", "--no-report"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=tmp_path, **quiet) as process:  # noqa: S603
        while not calls.exists() or len(calls.read_text().splitlines()) < 6:
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
    stored = len(open_study(tmp_path / "study").store.finished())
    assert stored >= 3
    subprocess.run([sys.executable, "-m", "lossmith", "resume", "study", *where], cwd=tmp_path, check=True, **quiet)  # noqa: S603
    study = open_study(tmp_path / "study")
    assert not study.unfinished
    assert len(calls.read_text().splitlines()) <= len(study.trials) + 6 - stored  # only what was in training is trained twice


FAULTS = {
    "ce": (lambda trial: {"accuracy": 0.5}, ""),
    "gce": (lambda trial: 1 / 0, "ZeroDivisionError: division by zero"),
    "mae": (lambda trial: None, "must return a dictionary"),
    "sce": (lambda trial: {"logits": np.zeros(5), "labels": np.zeros(5, int)}, "numbers (rows, classes) for logits"),
    "focal": (lambda trial: {"logits": np.full((5, 3), np.nan), "labels": np.zeros(5, int)}, "finite logits, got 15"),
    "nce": (lambda trial: sys.exit("out of memory"), "SystemExit: out of memory"),
}


def test_a_trial_that_fails_says_why_and_the_others_go_on(cluster: Cluster, tmp_path: Path) -> None:
    study = lossmith.compare(
        train=lambda trial: FAULTS[trial.name][0](trial),
        losses=list(FAULTS),
        noise=[0],
        seeds=1,
        epochs=3,  # of which none is ever reported
        engine="ray",
        output=tmp_path / "study",
        progress=False,
    )
    reasons = study.results.set_index("loss").untrained
    assert reasons["ce"] == ""
    for loss, (_, words) in FAULTS.items():
        assert words in reasons[loss]
        assert "\n" not in reasons[loss]


def in_two_processes(trial: Trial) -> dict[str, Any] | None:
    import torch.distributed as dist

    dist.init_process_group("gloo")
    total = torch.tensor(float(dist.get_rank() + 1))
    dist.all_reduce(total)
    first = dist.get_rank() == 0
    dist.destroy_process_group()
    return {"accuracy": float(total) / 4} if first else None


def test_a_trial_of_two_processes(cluster: Cluster, tmp_path: Path) -> None:
    study = lossmith.compare(
        train=in_two_processes,
        processes=2,
        losses=["ce", "gce"],
        noise=[0],
        seeds=1,
        engine="ray",
        output=tmp_path / "study",
        progress=False,
    )
    assert (study.results.accuracy == 0.75).all()


def test_minutes_count(cluster: Cluster, tmp_path: Path) -> None:
    given = {"losses": ["ce"], "noise": [0], "engine": "ray", "progress": False}
    study = lossmith.compare(train=lambda _: {"accuracy": 0.5}, minutes=0.001, output=tmp_path / "study", **given)
    assert study.results.seed.nunique() == 5


def test_data_is_put_into_the_object_store_once(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    puts = []
    monkeypatch.setattr(RayEngine, "share", lambda self, thing, share=RayEngine.share: puts.append(thing) or share(self, thing))
    given = {"losses": ["ce", "gce"], "noise": [0], "seeds": 2, "rates": [0.1], "epochs": 1, "rows": 100, "references": False}
    lossmith.compare("digits", minutes=100, engine="ray", output=tmp_path / "study", progress=False, **given)
    of_study = puts[-2:]
    assert [type(thing).__name__ for thing in of_study] == ["PreparedData"] * 2
    assert of_study[0] is not of_study[1]


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "nowhere.invalid:6379", "nonsense"])
def test_a_cluster_that_does_not_answer_is_one_line(tmp_path: Path, address: str) -> None:
    code = "import sys; from lossmith.command_line import main; sys.exit(main(sys.argv[1:]))"
    words = ["compare", "digits", "--engine", "ray", "--ray-address", address, "--output", str(tmp_path / "study")]
    found = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)  # noqa: S603
    assert found.returncode == 2
    last = found.stderr.strip().splitlines()[-1]
    assert last.startswith(f"lossmith: compare: no Ray cluster answers at {address}: ")


def test_gpus_are_for_ray_to_give(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "digits", "--engine", "ray", "--device", "cuda:1"]) == 2
    assert "device must be auto, cpu, cuda or mps with engine 'ray'" in capsys.readouterr().err


def test_tasks_go_by_what_they_train(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names, remote = [], ray.remote
    monkeypatch.setattr(ray, "remote", lambda *what, **given: names.append(given.get("name")) or remote(*what, **given))
    common = {"losses": ["ce", "gce"], "noise": [0.2], "seeds": 1, "engine": "ray", "progress": False}
    lossmith.compare("digits", rates=[0.1], epochs=1, rows=100, output=tmp_path / "built-in", references=False, **common)
    assert "ce, gce, symmetric(0.2), replicate 0, runs: 2" in names
    lossmith.compare(train=labels_alone, output=tmp_path / "own", **common)
    assert {name for name in names if name and name.startswith("gce")} == {"gce, symmetric(0.2), replicate 0"}


def labels_alone(trial: Trial) -> dict[str, Any]:
    trial.labels([0, 1, 2] * 10)
    return {"accuracy": 0.5}


def test_progress_is_told_as_without_ray(cluster: Cluster) -> None:
    engine, told = RayEngine(), []
    tasks = [lambda say, _, number=number: say({"done": number}) for number in range(3)]
    list(engine.run(tasks, told.append))
    assert sorted(map(json.dumps, told)) == [json.dumps({"done": number}) for number in range(3)]
