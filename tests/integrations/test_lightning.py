"""Schedules in the real Lightning, with checkpoints that load without trust."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

pl = pytest.importorskip("lightning.pytorch", reason="make test-integrations has Lightning")

from lossmith import LossScheduler, make_loss  # noqa: E402
from lossmith.integrations.lightning import LossSchedule  # noqa: E402
from lossmith.losses import ClassificationLoss  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning warns about few workers and small loaders
EPOCHS, BATCHES = 6, 4


class Module(pl.LightningModule):
    def __init__(self, loss: ClassificationLoss):
        super().__init__()
        self.save_hyperparameters()
        self.loss, self.layer, self.seen = loss, nn.Linear(4, 3), []

    def training_step(self, batch, _):
        self.seen.append(self.loss.q)
        return self.loss(self.layer(batch[0]), batch[1])

    def validation_step(self, batch, _):
        self.log("score", self.loss(self.layer(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def loader():
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(8 * BATCHES, 4, generator=generator)
    return DataLoader(TensorDataset(rows, rows[:, :3].argmax(1)), batch_size=8)


def trainer(folder, *callbacks, epochs=EPOCHS):
    options = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False, "accelerator": "cpu"}
    return pl.Trainer(max_epochs=epochs, default_root_dir=folder, callbacks=list(callbacks), **options)


def scheduled(interval="epoch"):
    loss = make_loss("gce", weight=[1.0, 2.0, 1.0])
    total = EPOCHS if interval == "epoch" else EPOCHS * BATCHES
    return Module(loss), LossSchedule(LossScheduler(loss, q="linear(1, 0)", total=total), interval)


def test_parameters_follow_epochs_and_are_logged(tmp_path):
    module, schedule = scheduled()
    logged = []

    class Watch(pl.Callback):
        def on_train_epoch_end(self, trainer, _):
            logged.append(float(trainer.callback_metrics["loss.q"]))

    trainer(tmp_path, schedule, Watch()).fit(module, loader())
    expected = torch.linspace(1, 0, EPOCHS)
    torch.testing.assert_close(torch.tensor(module.seen[::BATCHES]), expected)
    torch.testing.assert_close(torch.tensor(logged), expected)


def test_parameters_follow_batches(tmp_path):
    module, schedule = scheduled("batch")
    trainer(tmp_path, schedule).fit(module, loader())
    torch.testing.assert_close(torch.tensor(module.seen), torch.linspace(1, 0, EPOCHS * BATCHES))


@pytest.mark.parametrize("interval", ["epoch", "batch"])
@pytest.mark.parametrize("validates", [False, True], ids=["saved after the epoch", "saved after validation"])
def test_training_goes_on_where_it_was(tmp_path, interval, validates):
    module, schedule = scheduled(interval)
    checkpoint = pl.callbacks.ModelCheckpoint(tmp_path, filename="half", save_top_k=-1)
    held_out = loader() if validates else None
    trainer(tmp_path, schedule, checkpoint, epochs=EPOCHS // 2).fit(module, loader(), held_out)
    resumed, schedule = scheduled(interval)
    path = checkpoint.best_model_path
    trainer(tmp_path, schedule).fit(resumed, loader(), held_out, ckpt_path=path, weights_only=True)
    whole, schedule = scheduled(interval)
    trainer(tmp_path, schedule).fit(whole, loader(), held_out)
    assert resumed.seen == whole.seen[len(module.seen) :]


def test_other_schedules_are_refused(tmp_path):
    module, schedule = scheduled()
    first = trainer(tmp_path, schedule, epochs=1)
    first.fit(module, loader())
    first.save_checkpoint(tmp_path / "one.ckpt")
    module, _ = scheduled()
    schedule = LossSchedule(LossScheduler(module.loss, q="cosine(1, 0)", total=EPOCHS))
    with pytest.raises(ValueError, match="LossScheduler: the saved schedules must be"):
        trainer(tmp_path, schedule).fit(module, loader(), ckpt_path=tmp_path / "one.ckpt", weights_only=True)


def test_losses_are_hyper_parameters(tmp_path):
    module, schedule = scheduled()
    first = trainer(tmp_path, schedule, epochs=1)
    first.fit(module, loader())
    first.save_checkpoint(tmp_path / "one.ckpt")
    loaded = Module.load_from_checkpoint(tmp_path / "one.ckpt", weights_only=True)
    assert repr(loaded.loss) == repr(module.loss)


def test_errors():
    loss = make_loss("gce")
    with pytest.raises(TypeError, match=r"LossSchedule: scheduler must be a lossmith.LossScheduler, got Generalized"):
        LossSchedule(loss)
    with pytest.raises(ValueError, match="LossSchedule: interval must be 'epoch' or 'batch', got 'step'"):
        LossSchedule(LossScheduler(loss, q=0.5), "step")
