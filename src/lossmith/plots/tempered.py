"""Figures 1 and 2 of Amid et al. 2019, "Robust bi-tempered logistic loss based on Bregman divergences"."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor, nn

from lossmith.losses import BiTemperedLoss
from lossmith.numerics.tempered import exp_t, log_t
from lossmith.theory.one_thread import one_thread

__all__ = ["NOISES", "Noise", "draw", "share_right", "trained_network", "with_noise"]

_BLUE, _ORANGE = "#2f6fb0", "#e0702a"
_CURVE_COLORS = (_BLUE, "#7fb0dc", "#f0a877", _ORANGE)
_SHADES = LinearSegmentedColormap.from_list("classes", [_BLUE, "white", _ORANGE])
_EXTENT = 2.0
_STEPS = 500


def draw(folder: Path) -> Sequence[Path]:
    """Draw both figures into the folder.

    Args:
        folder: Where files are written.

    Returns:
        The files that were written.
    """
    with one_thread():
        files = {folder / "tempered-functions.png": _functions(), folder / "tempered-boundaries.png": _boundaries()}
    for file, figure in files.items():
        figure.savefig(file, dpi=100)
        with Image.open(file) as picture:
            small = picture.convert("RGB").quantize(96)
        small.save(file, optimize=True)
    return list(files)


def _functions() -> Figure:
    figure = Figure(figsize=(12, 3.3), layout="constrained")
    axes = figure.subplots(1, 4)
    inputs, activations = torch.linspace(0.005, 3, 400), torch.linspace(-6, 6, 400)
    _curves(axes[0], ("log_t(x)", "x", "t"), (0.0, 0.5, 1.0, 1.5, 2.0), inputs, lambda t: log_t(inputs, t))
    axes[0].set_ylim(-4, 2)
    _curves(axes[1], ("exp_t(x)", "x", "t"), (0.0, 0.5, 1.0, 1.5, 2.0), activations, lambda t: exp_t(activations, t))
    axes[1].set(ylim=(0, 4), xlim=(-4, 2))

    def loss(t1: float, t2: float) -> Tensor:
        logits = torch.stack((activations, torch.zeros_like(activations)), 1)
        target = torch.zeros(len(logits), dtype=torch.long)
        return BiTemperedLoss(t1, t2, reduction="none").example_losses(logits, target)

    _curves(axes[2], ("loss, t2 = 1.2", "activation", "t1"), (0.0, 0.4, 0.8, 1.0), activations, lambda t1: loss(t1, 1.2))
    _curves(axes[3], ("loss, t1 = 0.8", "activation", "t2"), (1.0, 1.2, 2.0, 4.0), activations, lambda t2: loss(0.8, t2))
    axes[3].sharey(axes[2])
    return figure


def _curves(
    axes: Any, labels: tuple[str, str, str], values: Sequence[float], x: Tensor, function: Callable[[float], Tensor]
) -> None:
    """Draw one curve for each value; the ordinary logarithm, exponential or loss is black."""
    title, horizontal, name = labels
    colors = iter(_CURVE_COLORS)
    for value in values:
        color = "black" if value == 1 else next(colors)
        axes.plot(x, function(value), color=color, label=f"{name} = {value:g}", linewidth=1.8)
    axes.set_title(title)
    axes.set_xlabel(horizontal)
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)


class Noise(NamedTuple):
    """A kind of wrong labels in the plane, and the temperatures that figure 2 answers it with."""

    name: str
    flips: Callable[[Tensor], Tensor]
    """Probability of a wrong label, given the distance from the boundary."""
    temperatures: tuple[float, float]


NOISES = (
    Noise("noise-free", torch.zeros_like, (0.2, 4.0)),
    Noise("small-margin noise", lambda margin: 0.45 * (margin < 0.25), (1.0, 4.0)),
    Noise("large-margin noise", lambda margin: 0.2 * (margin > 0.5), (0.2, 1.0)),
    Noise("random noise", lambda margin: torch.full_like(margin, 0.25), (0.2, 4.0)),
)


def _boundaries() -> Figure:
    """Train a small network on each kind of noise with either loss and shade what it predicts."""
    figure = Figure(figsize=(12, 6.6), layout="constrained")
    panels = figure.subplots(2, 4, sharex=True, sharey=True)
    points, clean, margin, chance = with_noise(torch.Generator().manual_seed(0))
    for noise, (above, below) in zip(NOISES, panels.T, strict=True):
        labels = torch.where(chance < noise.flips(margin), 1 - clean, clean)
        _panel(above, f"{noise.name}\nlogistic (1, 1)", BiTemperedLoss(1.0, 1.0), points, labels)
        t1, t2 = noise.temperatures
        _panel(below, f"bi-tempered ({t1:g}, {t2:g})", BiTemperedLoss(t1, t2), points, labels)
    return figure


def with_noise(generator: torch.Generator, count: int = 600) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Draw points of the plane.

    Args:
        generator: Draws them.
        count: How many.

    Returns:
        The points, their true classes, their distances from the boundary, and a number in [0, 1) that decides about each label.
    """
    points = (torch.rand(count, 2, generator=generator) * 2 - 1) * _EXTENT
    return (points, *_truth(points), torch.rand(len(points), generator=generator))


def _truth(points: Tensor) -> tuple[Tensor, Tensor]:
    """Return the class of each point, inside or outside of a circle, and its distance from the circle."""
    distance = points.norm(dim=1) - 1.2
    return (distance < 0).long(), distance.abs()


def _panel(axes: Any, title: str, loss: BiTemperedLoss, points: Tensor, labels: Tensor) -> None:
    network = trained_network(loss, points, labels)
    line, grid, probs = _predicted(network, loss)
    right = _right(grid, probs)
    image = probs.reshape(161, 161).T
    axes.contourf(line, line, image, levels=torch.linspace(0, 1, 11), cmap=_SHADES, alpha=0.75)
    axes.contour(line, line, image, levels=[0.5], colors="white", linewidths=2.5)
    axes.contour(line, line, _truth(grid)[0].reshape(161, 161).T, levels=[0.5], colors="black", linewidths=0.8, linestyles="--")
    colors = [_ORANGE if label else _BLUE for label in labels.tolist()]
    axes.scatter(*points.T, c=colors, s=7, linewidths=0)
    axes.set_title(f"{title}: {100 * right:.0f} % right", fontsize=10)
    axes.set(xticks=[], yticks=[], aspect="equal")


def share_right(network: nn.Module, loss: BiTemperedLoss) -> float:
    """Return the share of a grid over the plane that a network assigns to its true class.

    Args:
        network: From points to logits.
        loss: What it was trained with.

    Returns:
        A number in [0, 1].
    """
    _, grid, probs = _predicted(network, loss)
    return _right(grid, probs)


def _predicted(network: nn.Module, loss: BiTemperedLoss) -> tuple[Tensor, Tensor, Tensor]:
    """Return the line and the grid made of it, and the probability of the second class on the grid."""
    line = torch.linspace(-_EXTENT, _EXTENT, 161)
    grid = torch.cartesian_prod(line, line)
    with torch.no_grad():
        return line, grid, loss.predict_proba(network(grid))[:, 1]


def _right(grid: Tensor, probs: Tensor) -> float:
    return float(((probs > 0.5) == (_truth(grid)[0] == 1)).float().mean())


class _Scale(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, activations: Tensor) -> Tensor:
        return self.factor * activations


def trained_network(loss: BiTemperedLoss, points: Tensor, labels: Tensor, seed: int = 3) -> nn.Module:
    """Train the paper's network of 10 and 5 units.

    A heavy tail answers weakly to the activations, by ``2**(1-t2)`` where two classes are equal; scaled by the inverse, all
    losses begin with the same slope.

    Args:
        loss: What it is trained with.
        points: ``(n, 2)``.
        labels: Their classes.
        seed: Draws the initial weights.

    Returns:
        The network, from points to logits.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = nn.Sequential(
            nn.Linear(2, 10), nn.Tanh(), nn.Linear(10, 5), nn.Tanh(), nn.Linear(5, 2), _Scale(2 ** (loss.t2 - 1))
        )
    optimizer = torch.optim.Adam(network.parameters(), lr=0.03)
    for _ in range(_STEPS):
        optimizer.zero_grad()
        loss(network(points), labels).backward()
        optimizer.step()
    return network
