"""The average error of a fresh network against the target's logit."""

from collections.abc import Sequence
from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from torch import Tensor

from lossmith.losses import GeneralizedCrossEntropyLoss
from lossmith.theory import average_error, solve_logit_bias, transfer_parameters
from lossmith.theory.per_example import check_classes

__all__ = ["draw"]

CLASSES = (10, 1000)
POINTS = 61
REFERENCE = 100


def draw(folder: Path, classes: Sequence[int] | None = None) -> Sequence[Path]:
    """Draw figures 1, 2 and 3 of Staats, Thamm and Rosenow for numbers of classes.

    Args:
        folder: Where files are written.
        classes: Numbers of classes; by default those of the paper.

    Returns:
        The files that were written.

    Raises:
        ValueError: If a number of classes is below 2.
    """
    chosen = sorted(set(CLASSES if classes is None else classes))
    for number in chosen:
        check_classes("--classes", number, "figure")
    return [
        draw_one_loss(chosen, folder / "early-learning-mae.png"),
        draw_many_losses(chosen, folder / "early-learning-losses.png"),
        draw_transfer(chosen[-1], folder / "early-learning-transfer.png"),
    ]


def draw_one_loss(classes: Sequence[int], file: Path) -> Path:
    """Draw the mean absolute error for all numbers of classes: figure 1."""
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    z = _places(classes[-1])
    upper, lower = _panel(figure, z)
    for color, number in enumerate(classes):
        upper.plot(z, average_error("mae", number, z).value, label=f"{number} classes", color=f"C{color}", linewidth=1.8)
    _draw_logits(lower, z)
    upper.set_title("MAE: with many classes a fresh network meets no gradient", fontsize=11, loc="left")
    upper.legend(frameon=False)
    return _saved(figure, file)


def draw_many_losses(classes: Sequence[int], file: Path) -> Path:
    """Draw many losses, one panel for each number of classes, with the logits moved by the bias: figure 2."""
    figure = Figure(figsize=(1 + 5.2 * len(classes), 4.8), layout="constrained")
    for part, number in zip(figure.subfigures(1, len(classes), squeeze=False)[0], classes, strict=True):
        z, bias = _places(number), solve_logit_bias(number).epsilon
        upper, lower = _panel(part, z)
        for color, expression in enumerate(_compared(number)):
            errors = average_error(expression, number, z).value
            factor = max(1, round(float(errors.abs().max())))
            label = expression if factor == 1 else f"{expression}, divided by {factor}"
            upper.plot(z, errors / factor, label=label, color=f"C{color}", linewidth=1.6)
        _draw_logits(lower, z)
        _draw_logits(lower, z, bias)
        upper.set_title(f"{number} classes; logit bias {bias:.2f}", fontsize=11, loc="left")
        upper.legend(frameon=False, fontsize=8, loc="center left")
    return _saved(figure, file)


def draw_transfer(number: int, file: Path) -> Path:
    """Draw generalised cross-entropy at 100 classes, and at another number with the same and with the computed q: figure 3."""
    loss = GeneralizedCrossEntropyLoss(q=0.7)
    classes = number if number > REFERENCE else 10 * REFERENCE
    found = transfer_parameters(loss, REFERENCE, classes, "q")
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    z = _places(classes)
    upper, lower = _panel(figure, z)
    curves = ((loss, REFERENCE, "C0"), (loss, classes, "C3"), (found.loss, classes, "C2"))
    for each, size, color in curves:
        upper.plot(
            z, average_error(each, size, z).value, label=f"gce(q={each.q:.2f}), {size} classes", color=color, linewidth=1.8
        )
    upper.plot(0, found.target, "o", color="black", markersize=5, zorder=3)
    upper.axhline(found.target, color="0.6", linewidth=0.8, linestyle=":")
    _draw_logits(lower, z)
    upper.set_title("The average error at 0 is kept by a smaller q", fontsize=11, loc="left")
    upper.legend(frameon=False)
    return _saved(figure, file)


def _compared(number: int) -> tuple[str, ...]:
    """Return the losses of figure 2, with the parameters that the paper has for this number of classes."""
    many = "@100" if number >= 100 else "@10"
    return "ce", "bi-tempered", "mae", "gce(q=0.7)", f"agce{many}", f"nf-mae{many}", f"nce-agce{many}"


def _places(number: int) -> Tensor:
    return torch.linspace(-5, float(torch.tensor(number).log()) + 6, POINTS)


def _panel(figure: FigureBase, z: Tensor) -> tuple[Axes, Axes]:
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    upper.set(ylabel="average error ⟨δ⟩ of the target's logit", xlim=(float(z[0]), float(z[-1])))
    upper.axhline(0, color="0.6", linewidth=0.8)
    lower.set(xlabel="logit z of the target", ylabel="density", yticks=[])
    for axes in (upper, lower):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25, linewidth=0.6)
    return upper, lower


def _draw_logits(axes: Axes, z: Tensor, shift: float = 0.0) -> None:
    """Draw the density of a fresh network's logits, with or without bias."""
    fine = torch.linspace(float(z[0]), float(z[-1]), 400)
    density = torch.exp(-((fine - shift) ** 2) / 2)
    color, label, side = ("C2", "with bias", "left") if shift else ("C0", "fresh network", "right")
    axes.fill_between(fine, density, color=color, alpha=0.35, linewidth=0)
    axes.annotate(label, (shift, 1.02), ha=side, va="bottom", fontsize=8, color=color, annotation_clip=False)


def _saved(figure: Figure, file: Path) -> Path:
    figure.savefig(file, dpi=110)
    return file
