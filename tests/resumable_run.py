"""A small training run that writes a checkpoint every epoch, and that can be killed."""

import os
import signal
import sys
from pathlib import Path

import torch
from torch import Tensor, nn

from lossmith import LossScheduler, make_loss

EPOCHS = 12


def train(checkpoint: Path, kill_at: int | None = None) -> list[Tensor]:
    """Train, from the checkpoint if there is one, and return the parameters."""
    torch.manual_seed(0)
    data = torch.randn(64, 6)
    labels = (data @ torch.randn(6, 3)).argmax(1)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loss = make_loss("ce-el")
    scheduler = LossScheduler(loss, focus="focus-gradual", label_smoothing="linear(0.1, 0)", total=EPOCHS)
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    if checkpoint.exists():
        state = torch.load(checkpoint)
        for name, part in parts.items():
            part.load_state_dict(state[name])
        torch.set_rng_state(state["random"])
    for epoch in range(scheduler.last_epoch, EPOCHS):
        if epoch == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        for rows in torch.randperm(64).split(16):
            optimizer.zero_grad()
            loss(model(data[rows]), labels[rows]).backward()
            optimizer.step()
        scheduler.step()
        states = {name: part.state_dict() for name, part in parts.items()}
        torch.save({**states, "random": torch.get_rng_state()}, checkpoint)
    return [parameter.detach() for parameter in model.parameters()]


if __name__ == "__main__":
    train(Path(sys.argv[1]), int(sys.argv[2]))
