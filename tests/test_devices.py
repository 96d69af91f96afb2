"""Devices: their names, how many trials they take, and every step of training with fake CUDA tensors."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lossmith.training import devices
from lossmith.training.devices import chosen_device, devices_for
from lossmith.training.engines.local import LocalEngine
from lossmith.training.engines.workplace import Workplace

FAKE_CUDA = Path(__file__).parent / "fake_cuda"


@pytest.mark.skipif(shutil.which("c++") is None or sys.platform != "linux", reason="needs a C++ compiler for Linux")
@pytest.mark.skipif(torch.version.cuda is not None, reason="this torch has a CUDA of its own")
def test_steps_with_fake_cuda_tensors(tmp_path):
    torch_folder, library = Path(torch.__file__).parent, tmp_path / "fake_cuda.so"
    paths = [f"-I{torch_folder / 'include'}", f"-L{torch_folder / 'lib'}", "-lc10", "-ltorch_cpu"]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    build = ["c++", "-std=c++20", "-shared", "-fPIC", abi, FAKE_CUDA / "device.cpp", "-o", library, *paths]
    subprocess.run(build, check=True)  # noqa: S603
    run = [sys.executable, FAKE_CUDA / "run.py", library, FAKE_CUDA / "steps.py"]
    found = subprocess.run(run, capture_output=True, text=True, check=False)  # noqa: S603
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "", None, 3])
def test_names_that_no_device_has(name):
    with pytest.raises(ValueError, match="device must be auto, cpu, cuda, cuda:N or mps, got"):
        Workplace(device=name).make_engine()


def test_a_device_that_is_not_there_is_one_line(monkeypatch):
    for name, count, words in (("cuda", 0, "no cuda device"), ("cuda:2", 2, "2 cuda devices"), ("mps", 0, "no mps device")):
        monkeypatch.setattr(devices, "_count_of", lambda _, count=count: count)
        with pytest.raises(ValueError, match=f"one that is there, got '{name}'; this machine has {words}\\.$"):
            chosen_device(name)


def test_several_gpus_take_a_trial_each(monkeypatch):
    monkeypatch.setattr(devices, "_count_of", lambda kind: 4 * (kind == "cuda"))
    monkeypatch.setattr("lossmith.training.engines.local.processors", lambda: 16)
    assert chosen_device("auto") == torch.device("cuda")
    assert [str(each) for each in devices_for(chosen_device("cuda"))] == ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]
    assert devices_for(chosen_device("cuda:1")) == [torch.device("cuda", 1)]
    engine = Workplace(device="cuda").make_engine()
    assert (engine.slots(), engine.slots(processes=2)) == (4, 2)
    assert LocalEngine(device=torch.device("cuda"), gpus=0.5).slots() == 8
    assert LocalEngine(device=torch.device("cuda", 1)).slots() == 1


def test_one_file_decides_which_device_there_is():
    source = Path(devices.__file__).parents[1]
    asks = re.compile(r"(cuda|mps|xpu|accelerator)\.(is_available|device_count|current_device)|set_default_device|\.cuda\(")
    assert [file for file in source.rglob("*.py") if asks.search(file.read_text())] == [Path(devices.__file__)]
