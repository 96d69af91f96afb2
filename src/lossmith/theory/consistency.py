"""Whether the least expected loss belongs to the right prediction, by search."""

import torch
from torch import Tensor

from lossmith.theory.per_example import PerExampleLoss

__all__ = ["is_calibrated"]

# A few classes are enough to show that a loss is not calibrated; losses with a top k need some more than k.
FEW_CLASSES, SOME_CLASSES = 4, 12
RANDOM_STARTS = 10
STEPS = 120
# The least gap between right and wrong predictions, as a share of what the right one gains over none.
LEAST_GAP = 1e-6


def is_calibrated(function: PerExampleLoss, num_classes: int) -> bool | None:
    """Return whether the expected loss over labels is least only where the most probable label has the largest logit.

    Minimises it from many starts, freely, and with another label's logit held at or above that of the most probable one: a loss
    is calibrated if the second minimum is higher, whatever the distribution of labels. None where a loss needs more classes.
    """
    for size in (min(num_classes, FEW_CLASSES), min(num_classes, SOME_CLASSES)):
        try:
            function(torch.zeros(1, size, dtype=torch.float64), torch.zeros(1, dtype=torch.long))
        except ValueError:
            continue
        return _prefers_the_most_probable(function, size)
    return None


def _prefers_the_most_probable(function: PerExampleLoss, size: int) -> bool:
    shares = _distributions(size)
    nothing_held = torch.zeros_like(shares, dtype=torch.bool)
    rivals = [nothing_held.index_fill(1, torch.tensor(rival), True) for rival in {1, size - 1}]
    problems = shares.repeat(1 + len(rivals), 1)
    free, *wrong = _least_risks(function, problems, torch.cat([nothing_held, *rivals])).chunk(1 + len(rivals))
    undecided = _risks(function, torch.zeros(len(shares), 1, size, dtype=torch.float64), shares).squeeze(1)
    gap = torch.stack(wrong).amin(0) - free
    return bool((gap > LEAST_GAP * (undecided - free)).all())


def _distributions(size: int) -> Tensor:
    """Return label distributions, most probable first: a clear majority, none, a close race, and one class that is rare."""
    ranks = torch.arange(size, dtype=torch.float64)
    close = 1 + 0.2 * (ranks == 0)
    rare = (1.3 - ranks / size) * (1 - 0.95 * (ranks == size - 1))
    weights = torch.stack([0.25**ranks, size + 0.5 - ranks, close, rare])
    return weights / weights.sum(1, keepdim=True)


def _least_risks(function: PerExampleLoss, shares: Tensor, held: Tensor) -> Tensor:
    """Return the least expected loss under each distribution; logits that are held are at least that of class 0.

    Steps follow the sign of the gradient and grow while it stays the same, so they reach minima at infinity, where it vanishes.
    """
    problems, size = shares.shape
    free = _starts(size).repeat(problems, 1, 1)
    steps, before = torch.full_like(free, 0.3), torch.zeros_like(free)
    least = torch.full((problems,), torch.inf, dtype=torch.float64)
    for _ in range(STEPS):
        free.requires_grad_()
        with torch.enable_grad():
            risks = _risks(function, torch.where(held.unsqueeze(1), free[:, :, :1] + free.abs(), free), shares)
            (gradient,) = torch.autograd.grad(risks.sum(), free)
        least = torch.minimum(least, risks.detach().amin(1))
        turned = gradient * before < 0
        steps = (steps * torch.where(turned, 0.5, torch.where(before == 0, 1.0, 1.2))).clamp(1e-9, 1e9)
        before = torch.where(turned, 0.0, gradient)
        free = free.detach() - before.sign() * steps
    return least


def _starts(size: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    spread = torch.logspace(-1, 1, RANDOM_STARTS, dtype=torch.float64)[:, None]
    random = spread * torch.randn(RANDOM_STARTS, size, generator=generator, dtype=torch.float64)
    corners = 5 * torch.eye(size, dtype=torch.float64)[[0, 1, -1]]
    return torch.cat([torch.zeros(1, size, dtype=torch.float64), corners, -corners, random])


def _risks(function: PerExampleLoss, logits: Tensor, shares: Tensor) -> Tensor:
    """Return the expected loss of logits ``(problems, starts, K)`` under one distribution for each problem."""
    problems, starts, size = logits.shape
    losses = function(logits.reshape(-1, size).repeat_interleave(size, 0), torch.arange(size).repeat(problems * starts))
    return (losses.view(problems, starts, size) * shares.unsqueeze(1)).sum(2)
