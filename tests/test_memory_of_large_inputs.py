"""What keeps memory and time in bounds where there are many rows, texts or classes."""

import platform
import subprocess
import sys
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array

from lossmith import advise, load_data, make_loss
from lossmith.data.encoding.columns import _Block, _varying
from lossmith.data.sparse_rows import SparseRows
from lossmith.studies.budget import cost
from lossmith.studies.compare import planned
from lossmith.studies.design.given_settings import settings_from
from lossmith.theory import advice, average_error
from lossmith.theory.correction import Question, corrected, measured_start
from lossmith.theory.per_example import PerExampleLoss
from lossmith.theory.properties import target_errors

# The package has functions of the same names.
OVERLAP, PROPERTIES = import_module("lossmith.theory.fresh_network.overlap"), import_module("lossmith.theory.properties")
DRAWS = import_module("lossmith.theory.fresh_network.average_error")
PAGE_FAULTS_OF_ADVICE = """
import resource
from lossmith import advise
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
advise(300_000, losses=["gce"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_texts_stay_sparse():
    draw = np.random.default_rng(0)
    texts = [" ".join(draw.choice(["red", "green", "blue", "deep", "sea"], 6)) for _ in range(50)]
    frame = pd.DataFrame({"size": draw.random(50), "text": texts, "label": list("ab") * 25})
    data = load_data(frame, target="label")
    assert isinstance(data.inputs, SparseRows)
    assert data.kind == "mixed"
    assert len(data.inputs.values) < 50 * 60
    assert torch.equal(data.inputs.dense()[:, 0], load_data(frame[["size", "label"]], target="label").inputs[:, 0])


def test_constant_inputs_of_texts_are_left_out_as_those_of_numbers():
    dense = np.array([[1, 0, 0, 2], [1, 0, 3, 0], [1, 0, 0, 2], [1, 5, 0, 0]], dtype=np.float32)
    rows = np.arange(3)
    kept = _varying(_Block(csr_array(dense)), rows).numbers.toarray()
    assert np.array_equal(kept, _varying(_Block(dense), rows).numbers)
    assert np.array_equal(kept, dense[:, 2:])


def test_a_gradient_by_the_target_keeps_no_other_in_memory():
    found = PerExampleLoss("ce", "test").target_gradient(torch.zeros(3, 1000, dtype=torch.float64))
    assert found.untyped_storage().nbytes() == 3 * 8


def test_errors_in_blocks_are_those_of_all_rows(monkeypatch):
    function, places = PerExampleLoss("gce", "test"), [-3.0, 0.0, 2.0, 9.0]
    together = target_errors(function, 50, places)
    monkeypatch.setattr(PROPERTIES, "BLOCK_ELEMENTS", 60)
    torch.testing.assert_close(target_errors(function, 50, places), together, rtol=1e-13, atol=0)


def test_with_many_classes_the_largest_pull_is_found_in_two_steps(monkeypatch):
    whole = {loss: OVERLAP.overlap(loss, 300, samples=8) for loss in ("ce", "mae", "gce", "logit-bias(mae)")}
    monkeypatch.setattr(OVERLAP, "MANY_CLASSES", 100)
    for loss, expected in whole.items():
        assert abs(OVERLAP.overlap(loss, 300, samples=8) / expected - 1) < 0.03


def test_the_same_logits_are_drawn_once_unless_they_are_many(monkeypatch):
    DRAWS._kept_draws.cache_clear()
    kept = [average_error(loss, 40, 1.0, sigma=2.0, samples=9, seed=3) for loss in ("ce", "gce")]
    assert DRAWS._kept_draws.cache_info().misses == 1
    monkeypatch.setattr(DRAWS, "KEPT_ELEMENTS", 100)
    assert kept == [average_error(loss, 40, 1.0, sigma=2.0, samples=9, seed=3) for loss in ("ce", "gce")]
    assert DRAWS._kept_draws.cache_info().hits == 1


def test_a_factor_changes_the_start_as_measured():
    question, loss = Question(num_classes=3000, reference_classes=100, sigma=1.0), make_loss("nce")
    found = corrected(loss, measured_start(loss, question), question)
    assert found is not None
    assert str(found.loss).endswith("*nce")
    assert found.start == pytest.approx(measured_start(found.loss, question), rel=1e-4)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators have rules of their own")
def test_advice_asks_the_system_for_memory_once():
    answer = subprocess.run([sys.executable, "-c", PAGE_FAULTS_OF_ADVICE], capture_output=True, text=True, check=True)  # noqa: S603
    assert int(answer.stdout) < 20_000  # 51,000 where every row of logits gets new pages, 3,000 where they are kept


def test_advice_leaves_the_number_of_threads_as_it_was(monkeypatch):
    threads = []
    monkeypatch.setattr(advice, "_candidate", lambda *_: threads.append(torch.get_num_threads()))
    monkeypatch.setattr(advice, "_recommended", lambda *_: ())
    before = torch.get_num_threads()
    advise(10, losses=["ce"])
    assert threads == [1]
    assert torch.get_num_threads() == before


def test_the_time_of_a_study_is_told_by_a_part_of_its_rows(monkeypatch, tmp_path):
    trained_rows = []
    train_all = cost.train_all

    def counted(jobs, data, *arguments, **options):
        trained_rows.append(len(data.train))
        return train_all(jobs, data, *arguments, **options)

    monkeypatch.setattr(cost, "train_all", counted)
    monkeypatch.setattr(cost, "SAMPLE_ROWS", 100)
    plan = planned(settings_from({"data": "digits", "losses": ["ce"], "batch_size": 32}), output=tmp_path / "study")
    assert "time      about" in plan.describe()
    everything = len(load_data("digits").train)
    assert trained_rows
    assert all(rows == 100 for rows in trained_rows)
    assert everything > 1000
