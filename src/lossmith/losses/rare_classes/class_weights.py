"""Weights of classes for the option ``weight`` of any loss."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.losses.contract.needs_data import as_counts

__all__ = ["DEFAULT_BETA", "class_balanced_weights"]

DEFAULT_BETA = 0.999


def class_balanced_weights(counts: Tensor | Sequence[float], beta: float = DEFAULT_BETA) -> Tensor:
    """Return class weights by effective numbers of rows, ``(1 - beta) / (1 - beta**n)`` for a class of n, for rare classes.

    The more rows a class has, the less each further one adds: of n rows, ``(1 - beta**n) / (1 - beta)`` count. All weights are
    1 when beta = 0, and in proportion to 1 / n when beta = 1.

    Args:
        counts: How many training rows each class has, > 0.
        beta: In [0, 1]; the paper tries 0.9, 0.99, 0.999 and 0.9999.

    Returns:
        Weights ``(C,)`` that add up to the number of classes, for the option ``weight`` of any loss.

    Raises:
        TypeError: If beta is not a number.
        ValueError: If a count is not above 0, or beta is out of its range.

    >>> class_balanced_weights([5000, 500, 50], beta=0.999)
    tensor([0.1256, 0.3170, 2.5574])
    >>> class_balanced_weights([30, 10], beta=1.0)
    tensor([0.5000, 1.5000])

    Reference: Cui et al. 2019, "Class-balanced loss based on effective number of samples", equation 10.
    """
    share = Limits(0.0, 1.0).check("beta", beta, owner="class_balanced_weights")
    found = as_counts(counts, "class_balanced_weights")
    assert found is not None
    assert share is not None
    numbers = found.double()
    left = torch.tensor(1 - share, dtype=torch.float64, device=numbers.device)
    inverse = 1 / numbers if share == 1 else left / -torch.expm1(numbers * torch.log1p(-left))
    return (inverse * (len(numbers) / inverse.sum())).to(found.dtype)
