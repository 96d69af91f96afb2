"""What a loss looks like: its value, and how hard it pulls at the target's logit, beside cross-entropy."""

import io
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")

import matplotlib.pyplot as plt
import numpy as np
import torch

import lossmith
from lossmith.losses import ClassificationLoss
from lossmith.report.colours import DARK, LIGHT

CLASSES = 10
SCHEMES = {"light": (LIGHT, "#1c1e21", "#d8d5cf"), "dark": (DARK, "#e8e6e1", "#3a4046")}


def draw(name: str, loss: ClassificationLoss, folder: Path) -> dict[str, str]:
    """Draw a loss for light and for dark pages, and return the files by scheme, unless they are there already."""
    folder.mkdir(exist_ok=True)
    files = {scheme: folder / f"{name}-{scheme}.svg" for scheme in SCHEMES}
    margins = torch.linspace(-6, 12, 181, dtype=torch.float64)
    curves, reference = curves_of(loss, margins), curves_of(lossmith.CrossEntropyLoss(), margins)
    for scheme, file in files.items():
        picture = _picture(name, margins.numpy(), curves, reference, scheme)
        if not file.exists() or file.read_text(encoding="utf-8") != picture:
            file.write_text(picture, encoding="utf-8")
    return {scheme: file.name for scheme, file in files.items()}


def curves_of(loss: ClassificationLoss, margins: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return value and pull where the target's logit is ahead of all others, which are 0, by the margins."""
    logits = torch.zeros(len(margins), CLASSES, dtype=torch.float64)
    logits[:, 0] = margins
    logits.requires_grad_()
    loss.reduction = "none"
    values = loss(logits, torch.zeros(len(margins), dtype=torch.long))
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    return values.detach().numpy(), -gradient[:, 0].numpy()


def _picture(name: str, x: np.ndarray, curves: tuple[np.ndarray, ...], reference: tuple[np.ndarray, ...], scheme: str) -> str:
    colours, ink, rule = SCHEMES[scheme]
    style = {"text.color": ink, "axes.labelcolor": ink, "xtick.color": ink, "ytick.color": ink, "axes.edgecolor": rule}
    with mpl.rc_context(
        {**style, "svg.hashsalt": name, "font.size": 9, "axes.grid": True, "grid.color": rule, "grid.linewidth": 0.6}
    ):
        figure, panels = plt.subplots(1, 2, figsize=(7.4, 2.7), layout="constrained")
        for axes, title, curve, known in zip(panels, ("loss", "pull at the target's logit"), curves, reference, strict=True):
            axes.plot(x, known, color=colours[0], linewidth=1.1, linestyle=(0, (4, 3)), label="ce")
            axes.plot(x, curve, color=colours[1], linewidth=2, label=name)
            axes.set(title=title, xlabel="lead of the target's logit", xlim=(x[0], x[-1]))
            axes.spines[["top", "right"]].set_visible(False)
            axes.set_facecolor("none")
        if name != "ce":
            panels[0].legend(frameon=False, labelcolor=ink)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
        plt.close(figure)
    return written.getvalue()
