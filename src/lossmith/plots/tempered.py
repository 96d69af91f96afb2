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

__all__ = ["draw"]

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


class _Noise(NamedTuple):
    name: str
    flips: Callable[[Tensor], Tensor]
    """Probability of a wrong label, given the distance from the boundary."""
    temperatures: tuple[float, float]


_NOISES = (
    _Noise("noise-free", torch.zeros_like, (0.2, 4.0)),
    _Noise("small-margin noise", lambda margin: 0.45 * (margin < 0.25), (1.0, 4.0)),
    _Noise("large-margin noise", lambda margin: 0.2 * (margin > 0.5), (0.2, 1.0)),
    _Noise("random noise", lambda margin: torch.full_like(margin, 0.25), (0.2, 4.0)),
)


def _boundaries() -> Figure:
    """Train a small network on each kind of noise with either loss and shade what it predicts."""
    figure = Figure(figsize=(12, 6.6), layout="constrained")
    panels = figure.subplots(2, 4, sharex=True, sharey=True)
    generator = torch.Generator().manual_seed(0)
    points = (torch.rand(600, 2, generator=generator) * 2 - 1) * _EXTENT
    clean, margin = _truth(points)
    chance = torch.rand(len(points), generator=generator)
    for noise, (above, below) in zip(_NOISES, panels.T, strict=True):
        labels = torch.where(chance < noise.flips(margin), 1 - clean, clean)
        _panel(above, f"{noise.name}\nlogistic (1, 1)", BiTemperedLoss(1.0, 1.0), points, labels)
        t1, t2 = noise.temperatures
        _panel(below, f"bi-tempered ({t1:g}, {t2:g})", BiTemperedLoss(t1, t2), points, labels)
    return figure


def _truth(points: Tensor) -> tuple[Tensor, Tensor]:
    """Return the class of each point, inside or outside of a circle, and its distance from the circle."""
    distance = points.norm(dim=1) - 1.2
    return (distance < 0).long(), distance.abs()


def _panel(axes: Any, title: str, loss: BiTemperedLoss, points: Tensor, labels: Tensor) -> None:
    network = _trained(loss, points, labels)
    line = torch.linspace(-_EXTENT, _EXTENT, 161)
    grid = torch.cartesian_prod(line, line)
    with torch.no_grad():
        probs = loss.predict_proba(network(grid))[:, 1]
    right = ((probs > 0.5) == (_truth(grid)[0] == 1)).float().mean()
    image = probs.reshape(161, 161).T
    axes.contourf(line, line, image, levels=torch.linspace(0, 1, 11), cmap=_SHADES, alpha=0.75)
    axes.contour(line, line, image, levels=[0.5], colors="white", linewidths=2.5)
    axes.contour(line, line, _truth(grid)[0].reshape(161, 161).T, levels=[0.5], colors="black", linewidths=0.8, linestyles="--")
    colors = [_ORANGE if label else _BLUE for label in labels.tolist()]
    axes.scatter(*points.T, c=colors, s=7, linewidths=0)
    axes.set_title(f"{title}: {100 * right:.0f} % right", fontsize=10)
    axes.set(xticks=[], yticks=[], aspect="equal")


class _Scale(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, activations: Tensor) -> Tensor:
        return self.factor * activations


def _trained(loss: BiTemperedLoss, points: Tensor, labels: Tensor) -> nn.Module:
    """Train the paper's network of 10 and 5 units.

    A heavy tail answers weakly to the activations, by ``2**(1-t2)`` where two classes are equal; scaled by the inverse, all
    losses begin with the same slope.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        network = nn.Sequential(
            nn.Linear(2, 10), nn.Tanh(), nn.Linear(10, 5), nn.Tanh(), nn.Linear(5, 2), _Scale(2 ** (loss.t2 - 1))
        )
    optimizer = torch.optim.Adam(network.parameters(), lr=0.03)
    for _ in range(_STEPS):
        optimizer.zero_grad()
        loss(network(points), labels).backward()
        optimizer.step()
    return network
