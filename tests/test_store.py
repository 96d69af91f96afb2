"""The file of a study: whole after a kill, shared by processes, never overwritten."""

import io
import json
import math
import os
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
import torch

from lossmith.studies.references.train_references import Reference
from lossmith.studies.storage.store import Store, StoreError
from lossmith.training.recipe import CURVES, Cell, Run, Trained


def trained(run: Run, *, epochs: int = 3, **more) -> Trained:
    generator = np.random.default_rng(run.seed)
    logits = generator.normal(size=(5, 3)).astype(np.float32)
    curves = {name: list(generator.uniform(size=epochs)) for name in CURVES}
    probabilities = torch.softmax(torch.from_numpy(logits), 1).numpy()
    return Trained(run, curves, epochs, logits, probabilities, 0.5, **more)


def add(store: Store, one: Trained, measures=None) -> None:
    """Store a run whose predictions are kept."""
    store.add([(one, measures or {})], keep={one.run})


def choose_all(store: Store) -> None:
    """Let every run count."""
    store.choose([(Cell(row["loss"], row["noise"], row["seed"]), row["id"], "") for row in store.runs()])


@pytest.fixture
def store(tmp_path):
    return Store.create(tmp_path / "study.sqlite", {"settings": {"seeds": 3}})


def test_a_run_is_read_back_as_it_was(store):
    run = Run("gce", "symmetric(0.4)", 1, 0.1, 0.001, "q=0.5", 60)
    features, weights = np.ones((5, 2), np.float32), {"a": torch.eye(2)}
    one = trained(run, test_features=features, weights=weights, stands_for=4.0)
    add(store, one, {"accuracy": 0.9, "top5": float("nan")})
    (row,) = store.runs()
    assert tuple(row[name] for name in Run._fields) == run
    assert (row["epoch"], row["seconds"], row["stands_for"], row["accuracy"]) == (3, 0.5, 4.0, 0.9)
    assert row["diverged"] is row["stopped"] is False
    assert np.isnan(row["top5"])
    assert np.array_equal(store.array(row["id"], "logits"), one.test_logits)
    assert np.array_equal(store.array(row["id"], "features"), one.test_features)
    assert torch.equal(store.weights(row["id"])["a"], torch.eye(2))
    assert list(store.curve(row["id"], "memorised")) == one.curves["memorised"]
    assert store.finished() == {run}
    assert store.seed_of(row["id"]) == 1
    assert store.meta("settings") == {"seeds": 3}
    assert store.meta("missing") is None


def test_predictions_are_kept_of_those_that_may_count(store):
    best, other = trained(Run("ce", "none", 0, 0.1)), trained(Run("ce", "none", 0, 0.3), stopped=True, stands_for=0.0)
    store.add([(best, {}), (other, {})], keep={best.run})
    assert [store.kept(row["id"]) for row in store.runs()] == [{"logits"}, set()]
    assert [row["stopped"] for row in store.runs()] == [False, True]


def test_epochs_after_a_run_was_stopped_are_not_stored(store):
    one = trained(Run("ce", "none", 0, 0.1), epochs=4)
    for name in CURVES:
        one.curves[name][2:] = [float("nan")] * 2
    one.curves["false_label_accuracy"] = [float("nan")] * 4  # no label is wrong
    add(store, one)
    assert list(store.curve(1, "train_loss")) == one.curves["train_loss"][:2]
    assert np.isnan(store.curve(1, "false_label_accuracy")).all()


def test_a_choice_lets_go_of_what_was_kept_of_other_runs_of_its_cell(store):
    for seed, rate in ((0, 0.1), (0, 0.3), (1, 0.1)):
        add(store, trained(Run("ce", "none", seed, rate)))
    assert store.choices() == {}
    assert store.curves() == []
    store.choose([(Cell("ce", "none", 0), 2, "predicts one class")])
    assert store.choices() == {Cell("ce", "none", 0): (2, "predicts one class")}
    assert [store.kept(run) for run in (1, 2, 3)] == [set(), {"logits"}, {"logits"}]
    assert {row["run"] for row in store.curves()} == {2}
    store.choose([(Cell("ce", "none", 0), 2, ""), (Cell("ce", "none", 1), 3, "")])
    assert store.choices() == {Cell("ce", "none", 0): (2, ""), Cell("ce", "none", 1): (3, "")}
    assert {row["run"]: row["seed"] for row in store.curves()} == {2: 0, 3: 1}


def test_runs_of_one_replicate(store):
    for seed in (0, 1, 0):
        add(store, trained(Run("ce", "none", seed, 0.1 + len(store.runs()))))
    assert [row["id"] for row in store.runs(0)] == [1, 3]
    assert [row["id"] for row in store.runs(2)] == []
    with pytest.raises(StoreError, match=r"study.sqlite has no run 7\.$"):
        store.seed_of(7)


def test_probabilities_are_kept_only_where_they_are_not_the_softmax_of_the_logits(store):
    plain, other = trained(Run("ce", "none", 0, 0.1)), trained(Run("bi-tempered", "none", 0, 0.1))
    other.test_probabilities = np.full((5, 3), 1 / 3, np.float32)
    add(store, plain)
    add(store, other)
    assert ["probabilities" in store.kept(run["id"]) for run in store.runs()] == [False, True]


def test_the_first_of_two_equal_runs_stays(store):
    run = Run("ce", "none", 0, 0.1)
    add(store, trained(run), {"accuracy": 0.5})
    add(store, trained(run), {"accuracy": 0.7})
    assert [row["accuracy"] for row in store.runs()] == [0.5]
    add(store, trained(run._replace(weight_decay=0.1)), {"accuracy": 0.8})  # which is another run
    assert [row["accuracy"] for row in store.runs()] == [0.5, 0.8]


def test_references_are_kept(store):
    linear = Reference("logistic regression", "C=1", {"accuracy": 0.8, "nll": float("nan")}, 0.75, np.ones(4, bool), 0.1)
    store.add_references("none", 2, [linear])
    store.add_references("none", 2, [linear])  # by another process
    (row,) = store.references()
    assert (row["name"], row["noise"], row["seed"], row["settings"]) == ("logistic regression", "none", 2, "C=1")
    assert (row["accuracy"], row["validation_score"], row["seconds"]) == (0.8, 0.75, 0.1)


def test_the_split_of_a_replicate_is_kept(store):
    labels, rows = np.array([2, 0, 1]), np.array([7, 300_000, 9])
    store.add_replicate(1, 12, labels, rows)
    store.add_replicate(1, 99, labels[::-1], rows[::-1])  # another process: the first stays
    found = store.replicate(1)
    assert found.validation == 12
    assert np.array_equal(found.labels, labels)
    assert np.array_equal(found.test, rows)
    assert store.replicate(0) is None


def test_noise_is_kept(store):
    labels = np.array([2, 0, 1])
    store.add_noise("symmetric(0.4)", 0, 0.39, np.eye(3), labels)
    (row,) = store.noises()
    assert (row["noise"], row["rate"]) == ("symmetric(0.4)", 0.39)
    assert np.array_equal(store.noisy_labels("symmetric(0.4)", 0), labels)
    assert store.noisy_labels("symmetric(0.4)", 1) is None
    assert np.array_equal(row["matrix"], np.eye(3))


WRITER = """
    import sys
    sys.path.insert(0, {tests!r})
    from pathlib import Path
    from test_store import trained
    from lossmith.training.recipe import Run
    from lossmith.studies.storage.store import Store
    store = Store(Path({file!r}))
    print("ready", flush=True)
    for seed in range({runs}):
        run = Run("ce", "none", seed, 0.1)
        store.add([(trained(run, epochs=50), {{"accuracy": seed}})], keep={{run}})
"""


def writer(store, runs):
    code = textwrap.dedent(WRITER).format(tests=os.path.dirname(__file__), file=str(store.file), runs=runs)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)  # noqa: S603


def test_a_killed_writer_leaves_whole_runs(store):
    process = writer(store, 100_000)
    assert process.stdout.readline() == "ready\n"
    deadline = time.monotonic() + 60
    while len(store.finished()) < 5 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    again = Store(store.file)
    runs = again.runs()
    assert len(runs) >= 5
    assert all(len(again.curve(run["id"], "train_loss")) == 50 for run in runs)
    assert all(again.array(run["id"], "logits").shape == (5, 3) for run in runs)
    add(again, trained(Run("gce", "none", 0, 0.1)))
    assert len(again.runs()) == len(runs) + 1


def test_what_a_killed_writer_had_half_done_is_undone(store, tmp_path):
    for seed in range(50):
        add(store, trained(Run("ce", "none", seed, 0.1), epochs=50), {"accuracy": seed})
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
    assert all((Store(killed).curve(run, "train_loss") >= 0).all() for run in range(1, 51))


def test_two_writers_do_not_disturb_each_other(store):
    writers = [writer(store, 60) for _ in range(2)]
    for process in writers:
        process.communicate(timeout=120)
        assert process.returncode == 0
    assert sorted(run["accuracy"] for run in store.runs()) == list(range(60))
    choose_all(store)
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
        add(store, trained(Run("ce", "none", seed, 0.1), epochs=50))
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
    with pytest.raises(StoreError, match="has format 7, and this lossmith reads format 2; it was left as it is"):
        Store(store.file)


def test_no_space_left_is_one_line_and_loses_nothing(store, monkeypatch):
    """SQLite's own limit of pages stands for a full disk: the same error comes from the same place."""
    add(store, trained(Run("ce", "none", 0, 0.1)))
    connect = sqlite3.connect

    def limited(*arguments, **options):
        connection = connect(*arguments, **options)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    monkeypatch.setattr(sqlite3, "connect", limited)
    big = trained(Run("ce", "none", 1, 0.1), test_features=np.random.default_rng(0).normal(size=(1000, 100)))
    with pytest.raises(StoreError, match="database or disk is full; what it holds was left as it is"):
        add(store, big)
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


def _packed_zeros(size):
    """Return that many zeros, packed, without having them all at once."""
    packer = zlib.compressobj(1)
    part = bytes(2**20)
    return b"".join(packer.compress(part) for _ in range(size // len(part))) + packer.flush()


HOSTILE = {
    "no zlib": ("UPDATE array SET content = ?", b"rubbish", "array, logits of run 1"),
    "text for content": ("UPDATE array SET content = ?", "rubbish", "array, logits of run 1"),
    "too little": ("UPDATE array SET content = ?", zlib.compress(b"rubbish"), "array, logits of run 1"),
    "too much": ("UPDATE array SET content = ?", zlib.compress(bytes(1000)), "array, logits of run 1"),
    "cut": ("UPDATE array SET content = ?", zlib.compress(bytes(60))[:-3], "array, logits of run 1"),
    "a shape that is none": ("UPDATE array SET shape = ?", '{"a": 1}', "array, logits of run 1"),
    "a shape below zero": ("UPDATE array SET shape = ?", "[-5, -3]", "array, logits of run 1"),
    "a shape of a petabyte": ("UPDATE array SET shape = ?", "[1000000000, 1000000]", "array, logits of run 1"),
    "a type that is none": ("UPDATE array SET type = ?", "float33", "array, logits of run 1"),
    "a type of objects": ("UPDATE array SET type = ?", "O", "array, logits of run 1"),
    "measures that are no JSON": ("UPDATE run SET measures = ?", "{", "run, run 1"),
    "measures nested too deep": ("UPDATE run SET measures = ?", "[" * 100_000, "run, run 1"),
    "measures that are a list": ("UPDATE run SET measures = ?", "[1]", "run, run 1"),
    "a measure that is text": ("UPDATE run SET measures = ?", '{"accuracy": "high"}', "run, run 1"),
    "a measure named as a column": ("UPDATE run SET measures = ?", '{"loss": 1}', "run, run 1"),
    "a seed that is text": ("UPDATE run SET seed = ?", "many\nlines", "run, run 1"),
    "a loss that is bytes": ("UPDATE run SET loss = ?", b"\xff\xfe", "run, run 1"),
    "a curve of text": ("UPDATE curve SET train_loss = ?", "low", "curve, run 1"),
    "settings that are no JSON": ("UPDATE meta SET value = ?", "{", "meta, settings"),
    "settings that are a number": ("UPDATE meta SET value = ?", "5", "meta, settings"),
    "a matrix that is none": ("UPDATE noise SET matrix = ?", "[[1, 2], [3]]", "noise, none of seed 0"),
    "labels that are none": ("UPDATE noise SET labels = ?", b"rubbish", "noise, none of seed 0"),
    "a decay that is text": ("UPDATE run SET weight_decay = ?", "none", "run, run 1"),
    "a rate beyond all bounds": ("UPDATE run SET learning_rate = ?", 1e308, "run, run 1"),
    "an infinite time": ("UPDATE run SET seconds = ?", math.inf, "run, run 1"),
    "an infinite share": ("UPDATE run SET stands_for = ?", math.inf, "run, run 1"),
    "a measure beyond all bounds": ("UPDATE run SET measures = ?", '{"accuracy": 1e308}', "run, run 1"),
    "a choice of text": ("UPDATE choice SET run = ?", "the best", "choice, run 'the best'"),
    "a reason that is bytes": ("UPDATE choice SET untrained = ?", b"why", "choice, run 1"),
    "a reference without measures": ("UPDATE reference SET measures = ?", "[]", "reference, 'none' of seed 0"),
    "a reference that took text": ("UPDATE reference SET seconds = ?", "long", "reference, 'none' of seed 0"),
    "test rows that are none": ("UPDATE replicate SET test = ?", b"rubbish", "replicate, seed 0"),
    "validation rows that are text": ("UPDATE replicate SET validation = ?", "few", "replicate, seed 0"),
}


def read_everything(store):
    for run in store.runs():
        for name in store.kept(run["id"]):
            store.array(run["id"], name)
    for row in store.noises():
        store.noisy_labels(row["noise"], row["seed"])
    store.finished(), store.curves(), store.meta("settings"), store.choices(), store.references(), store.replicate(0)


@pytest.mark.parametrize("case", HOSTILE)
def test_content_that_does_not_fit_is_one_line_that_names_table_and_run(store, case):
    query, value, place = HOSTILE[case]
    add(store, trained(Run("ce", "none", 0, 0.1)), {"accuracy": 0.9})
    store.add_noise("none", 0, 0.0, np.eye(3), np.arange(3))
    store.add_references("none", 0, [Reference("largest class", "", {"accuracy": 0.1}, 0.1, np.ones(4, bool), 0.1)])
    store.add_replicate(0, 4, np.arange(3), np.arange(3))
    choose_all(store)
    read_everything(store)
    with sqlite3.connect(store.file) as connection:
        connection.execute(query, (value,))
    connection.close()
    with pytest.raises(StoreError) as caught:
        read_everything(Store(store.file))
    said = str(caught.value)
    assert said.startswith(f"{store.file}: table {place} is damaged (")
    assert said.endswith("; it was left as it is.")
    assert "\n" not in said


def test_a_small_content_that_would_fill_the_memory_is_refused(store, monkeypatch):
    monkeypatch.setattr("lossmith.studies.storage.stored_content.ROOM", 2**22)
    add(store, trained(Run("ce", "none", 0, 0.1)))
    size = 2**27
    content = _packed_zeros(size)
    assert len(content) < size / 200
    for shape in (json.dumps([size // 4]), json.dumps([5, 3])):
        with sqlite3.connect(store.file) as connection:
            connection.execute("UPDATE array SET shape = ?, content = ?", (shape, content))
        connection.close()
        tracemalloc.start()
        with pytest.raises(StoreError, match="table array, logits of run 1 is damaged"):
            store.array(1, "logits")
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 2**23  # the content itself, read from the file, and one step of inflating it


def test_an_array_of_another_shape_than_expected_is_refused_before_it_is_inflated(store):
    add(store, trained(Run("ce", "none", 0, 0.1)))
    assert store.array(1, "logits", (5, None)).shape == (5, 3)
    with pytest.raises(StoreError, match=r"logits of run 1 is damaged \(shape must be \(4, 3\), got \(5, 3\)\)"):
        store.array(1, "logits", (4, 3))


def test_a_large_array_that_fits_is_read(store, monkeypatch):
    monkeypatch.setattr("lossmith.studies.storage.stored_content.ROOM", 100)
    monkeypatch.setattr("lossmith.studies.storage.stored_content.STEP", 64)
    features = np.random.default_rng(0).normal(size=(50, 7))
    add(store, trained(Run("ce", "none", 0, 0.1), test_features=features))
    assert np.array_equal(store.array(1, "features"), features)


def test_weights_that_are_none_or_packed_are_refused(store):
    add(store, trained(Run("ce", "none", 0, 0.1), weights={"a": torch.zeros(1000)}))
    stream = io.BytesIO()
    stored = zipfile.ZipFile(io.BytesIO(store.array(1, "weights").tobytes()))
    with stored, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in stored.namelist():
            packed.writestr(name, stored.read(name))
    other = io.BytesIO()
    torch.save([torch.eye(2)], other)
    for content in (stream.getvalue(), other.getvalue(), pickle.dumps({"a": 1}), b""):
        with sqlite3.connect(store.file) as connection:
            row = (json.dumps([len(content)]), zlib.compress(content))
            connection.execute("UPDATE array SET shape = ?, content = ? WHERE name = 'weights'", row)
        connection.close()
        with pytest.raises(StoreError, match=r"table array, weights of run 1 is damaged \(.*\); it was left as it is\.$"):
            store.weights(1)


@pytest.mark.parametrize(
    "more",
    [
        "CREATE VIEW endless AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n",
        "CREATE TRIGGER own AFTER INSERT ON run BEGIN DELETE FROM run; END",
        "DROP TABLE curve",
        "ALTER TABLE run ADD COLUMN more AS (length(zeroblob(1000000000)))",
    ],
)
def test_other_tables_views_and_triggers_are_refused(store, more):
    with sqlite3.connect(store.file) as connection:
        connection.execute(more)
    connection.close()
    with pytest.raises(StoreError, match=r"has other tables than a study of lossmith has; it was left as it is\.$"):
        Store(store.file)


def test_damaged_pages_are_one_line(store):
    for seed in range(20):
        add(store, trained(Run("ce", "none", seed, 0.1), epochs=50))
    whole = store.file.read_bytes()
    for page in range(1, len(whole) // 4096):
        store.file.write_bytes(whole[: 4096 * page] + bytes([7]) * 64 + whole[4096 * page + 64 :])
        with pytest.raises(StoreError) as caught:
            read_everything(Store(store.file))
        assert "\n" not in str(caught.value)
        assert "***" not in str(caught.value)
