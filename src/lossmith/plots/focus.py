"""Which examples pull most: the gradient against the target's probability, for mixes of two losses."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from lossmith.losses import ClassificationLoss, CrossEntropyExpectationLoss, CrossEntropyLoss, ExpectationLoss

__all__ = ["draw", "target_gradient"]

FOCI = (0.0, 0.1, 0.2, 0.3, 0.4)


def target_gradient(loss: ClassificationLoss, probability: Tensor) -> Tensor:
    """Return the size of the gradient with respect to the target's logit, for probabilities of the target.

    Args:
        loss: A loss that looks only at the target's probability.
        probability: Numbers in [0, 1].

    Returns:
        The size of the gradient at each of them.

    >>> target_gradient(ExpectationLoss(), torch.tensor([0.0, 0.5, 1.0]))
    tensor([0.0000, 0.2500, 0.0000])
    """
    logits = torch.stack([probability.log(), torch.log1p(-probability)], 1).clamp(min=-1e3).requires_grad_()
    loss(logits, torch.zeros(len(probability), dtype=torch.long)).backward()
    assert logits.grad is not None
    return (logits.grad[:, 0] * len(probability)).abs()


def draw(folder: Path) -> Sequence[Path]:
    """Draw figure 1 of Battash, Hazan and Wolf, and next to it the same curves scaled to one height.

    Args:
        folder: Where files are written.

    Returns:
        The files that were written.
    """
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    probability = torch.linspace(0, 1, 401, dtype=torch.float64)
    for name, loss, focus, color in _mixes():
        gradient = target_gradient(loss, probability)
        style = {"color": color, "linewidth": 1.8, "linestyle": "--" if focus is None else "-"}
        left.plot(probability, gradient, label=name, **style)
        right.plot(probability, gradient / gradient.max(), **style)
        if focus is not None:
            peak = target_gradient(loss, torch.tensor([focus], dtype=torch.float64)).item()
            left.plot(focus, peak, "o", color=color, markersize=5)
            right.plot(focus, 1.0, "o", color=color, markersize=5, clip_on=False, zorder=3)
    _label(left, "size of the gradient", "Gradient of the target's logit")
    _label(right, "relative to its largest", "The focus F is where an example pulls most")
    figure.legend(loc="outside right center", frameon=False, title="CE + β EL")
    file = folder / "focus.png"
    figure.savefig(file, dpi=110)
    return [file]


def _mixes() -> list[tuple[str, ClassificationLoss, float | None, object]]:
    """Return label, loss, focus and colour of every curve; cross-entropy has its peak at 0 without a focus."""
    colors = mpl.colormaps["viridis"]
    curves: list[tuple[str, ClassificationLoss, float | None, object]] = [("CE alone", CrossEntropyLoss(), None, "0.45")]
    for focus in FOCI:
        loss = CrossEntropyExpectationLoss(focus=focus)
        curves.append((f"β = {loss.mix()[1]:.3g}   (F = {focus:g})", loss, focus, colors(focus / 0.58)))
    return [*curves, ("EL alone   (F = 0.5)", ExpectationLoss(), 0.5, colors(0.5 / 0.58))]


def _label(axes: Axes, height: str, title: str) -> None:
    axes.set(xlabel="probability of the target", ylabel=height, xlim=(0, 1), ylim=(0, None))
    axes.set_title(title, fontsize=11, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
