"""The maximum-probability cross-entropy."""

import torch
from torch import Tensor

from lossmith.kernels import Formula, Rows
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.numerics.entries import entry
from lossmith.numerics.softmax import surprises

__all__ = ["MaximumProbabilityCrossEntropyLoss"]


def maximum_probability(logits: Tensor, target: Tensor) -> Tensor:
    """Return ``-(max_c p_c - p_y) log p_y``, the lead ``max_c p_c - p`` being ``-max_c p_c expm1(z - max_c z_c)``.

    Args:
        logits: ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.

    Returns:
        Losses ``(N, ...)``.
    """
    top = logits.detach().argmax(1, keepdim=True)
    cost = surprises(logits)
    lead = -torch.exp(-entry(cost, top)) * torch.expm1(logits - entry(logits, top))
    if target.is_floating_point():
        return (target * lead * cost).sum(1)
    return entry(lead * cost, target.unsqueeze(1)).squeeze(1)


class MaximumProbabilityCrossEntropyLoss(ClassificationLoss):
    """Maximum-probability cross-entropy, ``-(max_c p_c - p) log p``.

    Nothing to learn from examples that are predicted right; for comparison, as it starts slowly with many classes.

    >>> import torch
    >>> loss = MaximumProbabilityCrossEntropyLoss()
    >>> logits = torch.tensor([0.0, 1.0])
    >>> loss(logits, torch.tensor(0)), loss(logits, torch.tensor(1))
    (tensor(0.6069), tensor(0.))

    Args:
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Zhou et al. 2019; equation 7 of Battash, Hazan and Wolf.
    """

    name = "mpce"

    def formula(self) -> Formula:
        """Return the cross-entropy, weighted by the lead of the most probable class."""
        return Rows(maximum_probability, {})
