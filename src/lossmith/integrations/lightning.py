"""Schedules of losses in Lightning."""

from collections.abc import Mapping
from typing import Any, Literal

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
except ModuleNotFoundError:  # the same under its older name
    from pytorch_lightning import Callback, LightningModule, Trainer

from lossmith.objectives.scheduler import LossScheduler

__all__ = ["LossSchedule"]


class LossSchedule(Callback):  # type: ignore[misc]
    """A callback that lets the parameters of a loss follow their schedules, logs them, and saves where they are in checkpoints.

    The time is Trainer's own, so that a training that is resumed goes on where it was, whatever moment it was saved at. One that
    is resumed with other schedules is refused.

    Args:
        scheduler: The schedules of a loss that the module trains with.
        interval: What a step of the scheduler is: an ``epoch``, or a ``batch``, also where several are accumulated.
        log: Whether to log the values, as ``loss.q`` for a parameter q.

    Raises:
        TypeError: If it is not a scheduler.
        ValueError: If the interval is neither.
    """

    def __init__(self, scheduler: LossScheduler, interval: Literal["epoch", "batch"] = "epoch", log: bool = True) -> None:
        super().__init__()
        if not isinstance(scheduler, LossScheduler):
            raise TypeError(f"LossSchedule: scheduler must be a lossmith.LossScheduler, got {type(scheduler).__name__}.")
        if interval not in ("epoch", "batch"):
            raise ValueError(f"LossSchedule: interval must be 'epoch' or 'batch', got {interval!r}.")
        self.scheduler, self.interval, self.log = scheduler, interval, log

    @property
    def state_key(self) -> str:
        """What checkpoints call it: several may be in use."""
        return f"LossSchedule({', '.join(self.scheduler.schedules)})"

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Set the values of the epoch.

        Args:
            trainer: What trains.
            pl_module: What is trained.
        """
        if self.interval == "epoch":
            self._go_to(trainer.current_epoch, pl_module)

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Set the values of the batch.

        Args:
            trainer: What trains.
            pl_module: What is trained.
            batch: The batch.
            batch_idx: Its number in the epoch.
        """
        if self.interval == "batch":
            self._go_to(trainer.fit_loop.total_batch_idx, pl_module)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the scheduler.

        Returns:
            Numbers and text.
        """
        return self.scheduler.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take the state of the scheduler.

        Args:
            state_dict: What :meth:`state_dict` returned.

        Raises:
            ValueError: If it is that of other schedules.
        """
        self.scheduler.load_state_dict(state_dict)

    def _go_to(self, moment: int, pl_module: LightningModule) -> None:
        if moment < self.scheduler.last_epoch:  # a training that starts anew
            self.scheduler.load_state_dict({**self.scheduler.state_dict(), "last_epoch": moment})
        while self.scheduler.last_epoch < moment:
            self.scheduler.step()
        if self.log:
            values = {f"loss.{path}": value for path, value in self.scheduler.get_last_value().items()}
            pl_module.log_dict(values, on_step=self.interval == "batch", on_epoch=self.interval == "epoch")
