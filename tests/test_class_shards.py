"""Classes over two and four processes, beside one process with all of them."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from class_shards import DONE
from lossmith import make_loss
from lossmith.kernels.sharded.collectives import Shard
from lossmith.kernels.sharded.rows import ShardedRows


@pytest.mark.parametrize("processes", [2, 4])
def test_losses_of_shards_are_those_of_the_whole(tmp_path, processes):
    script, meeting = Path(__file__).with_name("class_shards.py"), tmp_path / "meeting"
    commands = [[sys.executable, str(script), str(rank), str(processes), str(meeting)] for rank in range(processes)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for command in commands]  # noqa: S603
    try:
        said = [process.communicate(timeout=240)[0] for process in running]
    finally:
        for process in running:
            process.kill()  # where one has failed, the others wait for it
    assert all(DONE in each for each in said), "\n".join(said)


def test_what_needs_all_classes_in_one_place_is_refused():
    rows = ShardedRows(torch.zeros(2, 3), Shard(None, 0, 3, 6))
    assert rows.shape == (2, 6)
    with pytest.raises(NotImplementedError, match="cumsum is not known for logits whose classes are spread over processes"):
        rows.cumsum(1)
    with pytest.raises(NotImplementedError, match="sum along dim=0 is not known"):
        rows.sum(0)
    with pytest.raises(NotImplementedError, match="k must be <= 24"):
        make_loss("smooth-topk(k=25)")(ShardedRows(torch.zeros(2, 30), Shard(None, 0, 30, 60)), torch.tensor([0, 1]))
