"""Losses in the ``Trainer`` of Transformers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from lossmith.losses import ClassificationLoss, make_loss

__all__ = ["compute_loss"]

_IGNORED = -100
"""What Trainer and the models of Transformers mark tokens with that do not count."""


def compute_loss(loss: str | ClassificationLoss, shift: bool = True) -> Callable[..., Tensor]:
    """Return what ``Trainer(compute_loss_func=...)`` takes, to train with a loss of the library.

    With accumulated batches, several devices and label -100 it means what Trainer's own cross-entropy means: Trainer counts the
    labels of all batches of a step, and the sum of the losses is divided by that count. So class weights change how much a label
    pulls, but not what the sum is divided by. Smoothing is the loss's own ``label_smoothing``: with a function of one's own
    Trainer leaves ``label_smoothing_factor`` unused.

    Args:
        loss: A loss with the mean for its reduction, or its expression.
        shift: Whether the logits of a token predict the next label, as in causal language models. False for models that classify
            tokens, masked or not, and for those with encoder and decoder; models that classify sequences have nothing to shift.

    Returns:
        A function of the model's outputs, the labels, and how many labels count in all batches of the step.

    Raises:
        TypeError: If it is neither text nor a loss of the library.
        ValueError: If the loss does not average, or ignores another label than -100.

    >>> import torch
    >>> logits, labels = torch.zeros(1, 3, 4), torch.tensor([[2, 0, 3]])
    >>> compute_loss("ce")({"logits": logits}, labels, num_items_in_batch=torch.tensor(4))
    tensor(0.6931)
    """
    made = make_loss(loss) if isinstance(loss, str) else loss
    if not isinstance(made, ClassificationLoss):
        raise TypeError(f"compute_loss: loss must be text or a lossmith loss, got {type(loss).__name__}.")
    if made.reduction != "mean":
        raise ValueError(f"compute_loss: reduction of the loss must be 'mean', got {made.reduction!r}.")
    if made.ignore_index != _IGNORED:
        raise ValueError(f"compute_loss: ignore_index of the loss must be {_IGNORED}, as Trainer's is, got {made.ignore_index}.")

    def loss_of_batch(
        outputs: Mapping[str, Any] | Sequence[Any], labels: Tensor | None, num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        logits = outputs["logits"] if isinstance(outputs, Mapping) else outputs[0]
        if labels is None:
            raise ValueError("compute_loss: the batches must have labels, got none; Trainer's label_names lists their columns.")
        target = _aligned(labels, logits, shift).to(logits.device)
        of_classes = logits.shape[-1:] if target.is_floating_point() else ()
        denominator = _denominator(num_items_in_batch, target)
        # In single precision, as Trainer's own: half precision would not tell losses apart that differ by a thousandth.
        rows = logits.reshape(-1, logits.shape[-1]).float()
        found: Tensor = made.to(logits.device)(rows, target.reshape(-1, *of_classes), denominator=denominator)
        return found

    return loss_of_batch


def _aligned(labels: Tensor, logits: Tensor, shift: bool) -> Tensor:
    """Return labels in the places of the logits that predict them; shifting labels, not logits, saves a copy of these."""
    if not shift or logits.dim() != 3:
        return labels
    if labels.is_floating_point():
        raise ValueError(f"compute_loss: labels must be class indices where shift is true, got {labels.dtype}.")
    return F.pad(labels[:, 1:], (0, 1), value=_IGNORED)


def _denominator(count: Tensor | int | None, target: Tensor) -> Tensor | int | float | None:
    """Return what the sum is divided by: Trainer counts every number of a label with several, we count its rows."""
    if isinstance(count, Tensor):
        count = count.flatten()[0].to(target.device)  # one for each device, all equal, in nn.DataParallel
    return count / target.shape[-1] if count is not None and target.is_floating_point() else count
