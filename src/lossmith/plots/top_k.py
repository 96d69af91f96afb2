"""The figures of the smooth top-k loss: how sparse its gradient is, and what it looks like for three classes."""

from pathlib import Path

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.contour import QuadContourSet
from torch import Tensor

from lossmith.losses.top_k import HardTopKLoss, SmoothTopKLoss
from lossmith.theory.top_k_temperature import gradient_share, sensible_tau

__all__ = ["draw"]

SIZES = ((5, 100), (5, 1000), (1, 100))


def draw(folder: Path) -> list[Path]:
    """Draw both figures.

    Args:
        folder: Where files are written.

    Returns:
        The files that were written.
    """
    return [draw_sparsity(folder / "topk-sparsity.png"), draw_surface(folder / "topk-surface.png")]


def draw_sparsity(file: Path) -> Path:
    """Draw figure 2b of the paper, for scores as they are in a fresh network, with the tau that ``sensible_tau`` finds."""
    figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    taus = torch.logspace(-4, 1, 101).tolist()
    generator = torch.Generator().manual_seed(0)
    for k, num_classes in SIZES:
        scores = torch.randn(100, num_classes, generator=generator)
        shares = [gradient_share(SmoothTopKLoss(k, tau), scores) for tau in taus]
        (line,) = axes.semilogx(taus, shares, label=f"k = {k}, {num_classes} classes")
        tau = sensible_tau(k, num_classes)
        axes.plot(tau, gradient_share(SmoothTopKLoss(k, tau), scores), "o", color=line.get_color())
    axes.plot([], [], "o", color="grey", label="sensible_tau(k, classes)")
    axes.set(xlabel="temperature tau", ylabel="share of non-zero gradient entries", ylim=(0, 1.04), xlim=(taus[0], taus[-1]))
    axes.set_title("A small temperature makes the gradient of a fresh network sparse", fontsize="medium")
    axes.legend(loc="lower right", frameon=False)
    axes.grid(alpha=0.3)
    figure.savefig(file, dpi=130)
    plt.close(figure)
    return file


def draw_surface(file: Path) -> Path:
    """Draw the loss of class 1 with k = 2 of three classes, over the two other scores."""
    grid = torch.linspace(-6, 6, 121)
    losses = {
        "hard (tau = 0)": HardTopKLoss(2, reduction="none"),
        "smooth, tau = 0.1": SmoothTopKLoss(2, 0.1, reduction="none"),
        "smooth, tau = 1": SmoothTopKLoss(2, 1.0, reduction="none"),
    }
    figure, panels = plt.subplots(1, 3, figsize=(9.6, 3.5), layout="constrained", sharey=True)
    second, third = torch.meshgrid(grid, grid, indexing="xy")
    logits = torch.stack([torch.zeros_like(second), second, third], -1).flatten(0, 1)
    target = torch.zeros(len(logits), dtype=torch.long)
    for axes, (title, loss) in zip(panels, losses.items(), strict=True):
        contours = _draw_contours(axes, grid, loss(logits, target).view(len(grid), len(grid)))
        axes.set(title=title, xlabel="score of class 2", aspect="equal", xticks=range(-6, 7, 3), yticks=range(-6, 7, 3))
    panels[0].set_ylabel("score of class 3")
    figure.colorbar(contours, ax=panels, label="loss")
    figure.suptitle("Top-2 loss of class 1, whose score is 0: high only where both others are ahead", fontsize="medium")
    figure.savefig(file, dpi=130)
    plt.close(figure)
    return file


def _draw_contours(axes: Axes, grid: Tensor, losses: Tensor) -> QuadContourSet:
    levels = torch.linspace(0, 4, 17).tolist()
    filled = axes.contourf(grid, grid, losses, levels=levels, cmap="viridis", extend="max")
    axes.contour(grid, grid, losses, levels=levels[2::2], colors="white", linewidths=0.5)
    axes.axhline(0, color="white", linestyle=":", linewidth=0.8)
    axes.axvline(0, color="white", linestyle=":", linewidth=0.8)
    return filled
