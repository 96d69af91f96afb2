"""The file of a study: whole after a kill, shared by processes, never overwritten."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import torch

from lossmith.experiments.plan import CURVES, Run, Trained
from lossmith.experiments.store import Store, StoreError


def trained(run: Run, *, epochs: int = 3, **more) -> Trained:
    generator = np.random.default_rng(run.seed)
    logits = generator.normal(size=(5, 3)).astype(np.float32)
    curves = {name: list(generator.uniform(size=epochs)) for name in CURVES}
    probabilities = torch.softmax(torch.from_numpy(logits), 1).numpy()
    return Trained(run, curves, epochs, logits, probabilities, 0.5, **more)


@pytest.fixture
def store(tmp_path):
    return Store.create(tmp_path / "study.sqlite", {"settings": {"seeds": 3}})


def test_a_run_is_read_back_as_it_was(store):
    one = trained(
        Run("gce(q=0.7)", "symmetric(0.4)", 1, 0.1), test_features=np.ones((5, 2), np.float32), weights={"a": torch.eye(2)}
    )
    assert store.add(one, {"accuracy": 0.9, "top5": float("nan")})
    (row,) = store.runs()
    assert (row["loss"], row["seed"], row["learning_rate"], row["accuracy"], row["diverged"]) == (
        "gce(q=0.7)",
        1,
        0.1,
        0.9,
        False,
    )
    assert np.isnan(row["top5"])
    assert np.array_equal(store.array(row["id"], "logits"), one.test_logits)
    assert np.array_equal(store.array(row["id"], "features"), one.test_features)
    assert torch.equal(store.weights(row["id"])["a"], torch.eye(2))
    curves = store.curves()
    assert [epoch["memorised"] for epoch in curves] == one.curves["memorised"]
    assert store.finished() == {one.run}
    assert store.meta("settings") == {"seeds": 3}
    assert store.meta("missing") is None


def test_probabilities_are_kept_only_where_they_are_not_the_softmax_of_the_logits(store):
    plain, other = trained(Run("ce", "none", 0, 0.1)), trained(Run("bi-tempered", "none", 0, 0.1))
    other.test_probabilities = np.full((5, 3), 1 / 3, np.float32)
    store.add(plain, {})
    store.add(other, {})
    assert ["probabilities" in store.kept(run["id"]) for run in store.runs()] == [False, True]


def test_the_first_of_two_equal_runs_stays(store):
    run = Run("ce", "none", 0, 0.1)
    assert store.add(trained(run), {"accuracy": 0.5})
    assert not store.add(trained(run), {"accuracy": 0.7})
    assert [row["accuracy"] for row in store.runs()] == [0.5]


def test_noise_is_kept(store):
    labels = np.array([2, 0, 1])
    store.add_noise("symmetric(0.4)", 0, 0.39, np.eye(3), labels)
    (row,) = store.noises()
    assert (row["noise"], row["rate"]) == ("symmetric(0.4)", 0.39)
    assert np.array_equal(row["labels"], labels)
    assert np.array_equal(row["matrix"], np.eye(3))


WRITER = """
    import sys
    sys.path.insert(0, {tests!r})
    from pathlib import Path
    from test_store import trained
    from lossmith.experiments.plan import Run
    from lossmith.experiments.store import Store
    store = Store(Path({file!r}))
    print("ready", flush=True)
    for seed in range({runs}):
        store.add(trained(Run("ce", "none", seed, 0.1), epochs=50), {{"accuracy": seed}})
"""


def writer(store, runs):
    code = textwrap.dedent(WRITER).format(tests=os.path.dirname(__file__), file=str(store.file), runs=runs)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)  # noqa: S603


def test_a_killed_writer_leaves_whole_runs(store):
    process = writer(store, 100_000)
    assert process.stdout.readline() == "ready\n"
    while len(store.finished()) < 5:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    again = Store(store.file)
    runs = again.runs()
    assert len(runs) >= 5
    assert len(again.curves()) == 50 * len(runs)
    assert all(again.array(run["id"], "logits").shape == (5, 3) for run in runs)
    assert again.add(trained(Run("gce", "none", 0, 0.1)), {})


def test_what_a_killed_writer_had_half_done_is_undone(store, tmp_path):
    for seed in range(50):
        store.add(trained(Run("ce", "none", seed, 0.1), epochs=50), {"accuracy": seed})
    connection = sqlite3.connect(store.file, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")  # so that pages reach the file before the end of the transaction
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE curve SET train_loss = -1")
    (tmp_path / "killed").mkdir()
    for suffix in ("", "-journal"):  # what is on the disk at this moment is what a kill would leave
        (tmp_path / "killed" / f"study.sqlite{suffix}").write_bytes(store.file.with_name(f"study.sqlite{suffix}").read_bytes())
    connection.close()
    killed = tmp_path / "killed" / "study.sqlite"
    assert killed.read_bytes() != store.file.read_bytes()
    assert all(row["train_loss"] >= 0 for row in Store(killed).curves())


def test_two_writers_do_not_disturb_each_other(store):
    writers = [writer(store, 60) for _ in range(2)]
    for process in writers:
        process.communicate()
        assert process.returncode == 0
    assert sorted(run["accuracy"] for run in store.runs()) == list(range(60))
    assert len(store.curves()) == 50 * 60


def test_an_existing_file_is_never_overwritten(store):
    before = store.file.read_bytes()
    with pytest.raises(StoreError, match=r"study.sqlite exists already\.$"):
        Store.create(store.file, {})
    assert store.file.read_bytes() == before


def test_a_missing_file(tmp_path):
    with pytest.raises(StoreError, match=r"nothing/study.sqlite does not exist; a study is made by 'lossmith compare'\.$"):
        Store(tmp_path / "nothing" / "study.sqlite")


def test_foreign_files_are_left_as_they_are(tmp_path):
    text, database = tmp_path / "text.sqlite", tmp_path / "database.sqlite"
    text.write_text("a letter to a friend")
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE other (x)")
    connection.commit()
    connection.close()
    for file in (text, database):
        before = file.read_bytes()
        with pytest.raises(StoreError, match="is not a study of lossmith; it was left as it is"):
            Store(file)
        assert file.read_bytes() == before


def test_a_damaged_file_is_left_as_it_is(store):
    for seed in range(20):
        store.add(trained(Run("ce", "none", seed, 0.1), epochs=50), {})
    whole = store.file.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:5000] + bytes(20_000) + whole[25_000:]):
        store.file.write_bytes(damaged)
        with pytest.raises(StoreError, match=r"left as it is\.$"):
            Store(store.file).runs()
        assert store.file.read_bytes() == damaged


def test_a_later_format_is_named(store):
    connection = sqlite3.connect(store.file)
    connection.execute("PRAGMA user_version = 7")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="has format 7, and this lossmith reads format 1; it was left as it is"):
        Store(store.file)


def test_no_space_left_is_one_line_and_loses_nothing(store, monkeypatch):
    """SQLite's own limit of pages stands for a full disk: the same error comes from the same place."""
    store.add(trained(Run("ce", "none", 0, 0.1)), {})
    connect = sqlite3.connect

    def limited(*arguments, **options):
        connection = connect(*arguments, **options)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    monkeypatch.setattr(sqlite3, "connect", limited)
    big = trained(Run("ce", "none", 1, 0.1), test_features=np.random.default_rng(0).normal(size=(1000, 100)))
    with pytest.raises(StoreError, match="database or disk is full; what it holds was left as it is"):
        store.add(big, {})
    monkeypatch.undo()
    assert store.finished() == {Run("ce", "none", 0, 0.1)}
    assert Store(store.file).runs()[0]["seed"] == 0


def test_a_folder_that_cannot_be_written_to_is_one_line(tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o555)
    few = ["--losses", "ce,gce", "--noise", "0", "--seeds", "1", "--epochs", "1", "--rates", "0.1"]
    to_root, closed = os.geteuid() == 0, ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]
    if to_root and not shutil.which("setpriv"):
        pytest.skip("no folder is closed to root, unless setpriv takes its privilege")
    command = [*(closed if to_root else []), sys.executable, "-m", "lossmith", "compare", "iris", *few, "--output", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"lossmith: {folder} must be a folder that can be written to: ")
    assert "Traceback" not in done.stderr
    assert not any(folder.iterdir())
