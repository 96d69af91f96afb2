"""How a network computes: in which precision, and with the numbers of an image in which order.

Both are a matter of speed. Convolutions are fastest where the channels of a pixel stand side by side in memory; a processor with
instructions for bfloat16 makes twice as many products a second with it. Weights, their gradients' sum, the final layer and the
loss stay in single precision: eight bits are enough for what layers pass on, but not for what is added up over many steps, nor
for logits whose differences a loss looks at.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from lossmith.data.sparse_rows import Inputs, SparseRows

__all__ = ["PRECISIONS", "computed", "takes_channels_last"]

PRECISIONS = ("float32", "bfloat16")


def computed(layers: Callable[[Inputs], Tensor], inputs: Inputs, precision: str, *, channels_last: bool) -> Tensor:
    """Call layers in a precision.

    Args:
        layers: What is called.
        inputs: A batch for each run, ``(runs, rows, ...)``, or sparse rows for all of them.
        precision: One of ``PRECISIONS``.
        channels_last: Whether images, of one run, are handed over with their channels last in memory.

    Returns:
        What the layers give, in single precision.
    """
    if channels_last and isinstance(inputs, Tensor):
        inputs = _channels_last(inputs.squeeze(0)).unsqueeze(0)
    if precision == "float32":
        return layers(inputs)
    with torch.autocast(inputs.device.type, torch.bfloat16):
        return layers(inputs).float()


def takes_channels_last(model: nn.Module, images: Inputs) -> bool:
    """Return whether a model has convolutions of images, and computes the same where channels are last in memory.

    A user's model may look at memory as it is, by ``view``, and then fails.

    Args:
        model: The model, which is left as it is, but for its mode.
        images: A few inputs.

    Returns:
        True if it does.
    """
    if (
        isinstance(images, SparseRows)
        or images.dim() != 4
        or not any(isinstance(module, nn.Conv2d) for module in model.modules())
    ):
        return False
    model.eval()
    try:
        with torch.no_grad():
            return torch.allclose(model(_channels_last(images)), model(images), rtol=1e-3, atol=1e-4)
    except RuntimeError:
        return False


def _channels_last(images: Tensor) -> Tensor:
    """Return a copy with channels last, in its strides, too, where there is only one: convolutions go by them."""
    return torch.empty_like(images, memory_format=torch.channels_last).copy_(images)
