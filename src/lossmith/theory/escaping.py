"""How large the gradients of a mixed loss are, and how strongly their noise drives training out of a minimum."""

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lossmith.expressions.limits import Limits, is_whole
from lossmith.losses import make_loss

__all__ = ["EscapingEfficiency", "escaping_efficiency", "gradient_volume_factor"]


def gradient_volume_factor(alpha: float, beta: float, *, entry: str = "target") -> float:
    """Return by how much ``alpha CE + beta EL`` has larger gradients than cross-entropy, averaged over probabilities.

    Train cross-entropy with the learning rate multiplied by it to see what is due to larger gradients alone. For the
    target's logit (``entry="target"``) it is the integral of ``(alpha + beta p)(1 - p)`` over p in [0, 1], divided by that for
    cross-entropy, 1/2: ``alpha + beta / 3``. For other logits (``entry="other"``) it is the double integral of
    ``p_j (alpha + beta p)``, divided by 1/2: ``alpha + beta / 2``. 1 when alpha = 1 and beta = 0.

    Args:
        alpha: The factor of cross-entropy, >= 0.
        beta: The factor of the expectation loss, >= 0.
        entry: The logit whose gradient counts, ``target`` or ``other``.

    Returns:
        The quotient of mean gradients.

    Raises:
        ValueError: If a factor is negative, or ``entry`` is neither.

    >>> gradient_volume_factor(1.0, 3.0), gradient_volume_factor(1.0, 3.0, entry="other")
    (2.0, 2.5)

    Reference: equations 20 to 22 of Battash, Hazan and Wolf.
    """
    for name, value in (("alpha", alpha), ("beta", beta)):
        Limits(0.0).check(name, value, owner="gradient_volume_factor")
    if entry not in ("target", "other"):
        raise ValueError(f"gradient_volume_factor: entry must be 'target' or 'other', got {entry!r}.")
    return alpha + beta / (3 if entry == "target" else 2)


class EscapingEfficiency(NamedTuple):
    """An estimate and its standard error."""

    value: float
    standard_error: float


def escaping_efficiency(
    model: nn.Module,
    loss: str | Callable[[Tensor, Tensor], Tensor],
    loader: Iterable[tuple[Tensor, Tensor]],
    *,
    batch_size: int = 1,
    probes: int = 32,
    generator: torch.Generator | None = None,
) -> EscapingEfficiency:
    """Estimate ``Tr(H S)``: how fast the noise of gradient descent raises the loss, hence how well it leaves sharp minima.

    ``H`` is the Hessian of the mean loss over the ``N`` examples of the loader, and ``S`` the covariance of the gradient of a
    random batch of ``batch_size``, ``(1/N sum_i g_i g_i' - g g') / batch_size``. Neither is formed. A probe draws a random sign
    for every example; the sum ``u`` of the signed, centred per-example gradients has the covariance ``S``, up to a factor, and
    ``u' H u`` is Hutchinson's estimate of the trace. It costs two gradients and one Hessian-vector product over the
    data, which are kept in memory. The model runs in the mode that it is in: call ``.eval()`` first if examples should not
    see one another in normalisation layers, and always if there is dropout, whose noise would count as that of the examples.
    ``loss`` is one of this library or of torch, its expression, or any function that returns a loss for each example.

    Args:
        model: A classifier.
        loss: A loss, its expression, or a function of logits and target that returns a number for each example.
        loader: Yields inputs and targets.
        batch_size: The size of the batches whose noise is meant.
        probes: How many random signs are drawn for each example, at least 2.
        generator: Draws them.

    Returns:
        The estimate and its standard error.

    Raises:
        ValueError: If a number is out of its range, there is no example, or the loss averages over examples.

    >>> _ = torch.manual_seed(0)
    >>> model, data = nn.Linear(2, 2), [(torch.randn(8, 2), torch.randint(2, (8,)))]
    >>> value, error = escaping_efficiency(model, nn.CrossEntropyLoss(), data, probes=100)
    >>> value > 3 * error > 0
    True

    Reference: equations 15 to 18 of Battash, Hazan and Wolf; Zhu et al. 2018.
    """
    if not (is_whole(probes) and probes >= 2):
        raise ValueError(f"escaping_efficiency: probes must be a whole number >= 2, got {probes!r}.")
    if not (is_whole(batch_size) and batch_size >= 1):
        raise ValueError(f"escaping_efficiency: batch_size must be a whole number >= 1, got {batch_size!r}.")
    noise = _GradientNoise(model, loss, loader)
    estimates = torch.tensor([noise.estimate(noise.signs(generator)) for _ in range(probes)], dtype=torch.float64) / batch_size
    return EscapingEfficiency(estimates.mean().item(), estimates.std().item() / math.sqrt(probes))


class _GradientNoise:
    """The per-example losses of a data set, as functions of the model's parameters."""

    def __init__(
        self, model: nn.Module, loss: str | Callable[[Tensor, Tensor], Tensor], loader: Iterable[tuple[Tensor, Tensor]]
    ) -> None:
        self.model = model
        self.loss: Any = make_loss(loss) if isinstance(loss, str) else loss
        if isinstance(self.loss, nn.Module) and hasattr(self.loss, "reduction"):
            self.loss = copy.deepcopy(self.loss)
            self.loss.reduction = "none"
        self.batches = [_pair(batch) for batch in loader]
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.examples = sum(len(target) for _, target in self.batches)
        if not self.examples or not self.parameters:
            raise ValueError(
                f"escaping_efficiency: needs examples and parameters, got {self.examples} and {len(self.parameters)}."
            )

    def signs(self, generator: torch.Generator | None = None) -> Tensor:
        return torch.randint(2, (self.examples,), generator=generator).double() * 2 - 1

    def estimate(self, signs: Tensor) -> float:
        """Return ``u' H u`` for ``u = sum_i (s_i - mean s) g_i / sqrt(N)``, which centres the gradients."""
        direction = self._direction((signs - signs.mean()) / math.sqrt(self.examples))
        total = 0.0
        for inputs, target in self.batches:
            losses = self._losses(inputs, target)
            gradient = torch.autograd.grad(losses.sum() / self.examples, self.parameters, create_graph=True, allow_unused=True)
            slope = _dot(gradient, direction)
            curvature = torch.autograd.grad(slope, self.parameters, allow_unused=True) if slope.requires_grad else ()
            total += _dot(curvature, direction).item()
        return total

    def _direction(self, factors: Tensor) -> list[Tensor]:
        direction = [torch.zeros_like(parameter) for parameter in self.parameters]
        sizes = [len(target) for _, target in self.batches]
        for (inputs, target), share in zip(self.batches, torch.split(factors, sizes), strict=True):
            losses = self._losses(inputs, target)
            weighted = (losses * share.to(losses)).sum()
            gradient = torch.autograd.grad(weighted, self.parameters, allow_unused=True)
            direction = [total if part is None else total + part for total, part in zip(direction, gradient, strict=True)]
        return direction

    def _losses(self, inputs: Tensor, target: Tensor) -> Tensor:
        """Return one loss for each example; that of a sequence or an image is the mean over its places."""
        losses: Tensor = self.loss(self.model(inputs), target)
        if losses.dim() == 0 or len(losses) != len(target):
            got = "their mean or sum" if losses.dim() == 0 else f"shape {tuple(losses.shape)}"
            raise ValueError(f"escaping_efficiency: loss must return one number for each of {len(target)} examples, got {got}.")
        return losses.flatten(1).mean(1) if losses.dim() > 1 else losses


def _pair(batch: Any) -> tuple[Tensor, Tensor]:
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        got = f"{len(batch)} things" if isinstance(batch, tuple | list) else type(batch).__name__
        raise ValueError(f"escaping_efficiency: loader must give pairs of inputs and targets, got {got}.")
    return batch[0], batch[1]


def _dot(first: Iterable[Tensor | None], second: Iterable[Tensor]) -> Tensor:
    products = [(one * other).sum() for one, other in zip(first, second, strict=False) if one is not None]
    return sum(products[1:], start=products[0]) if products else torch.zeros(())
