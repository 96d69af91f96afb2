"""Elementary symmetric polynomials of numbers given by their logarithms."""

import torch
from torch import Tensor

from lossmith.numerics.precision import in_double

__all__ = ["elementary_symmetric"]


def elementary_symmetric(log_values: Tensor, k: int) -> Tensor:
    """Return ``log sigma_0 .. log sigma_k`` of numbers given by their logarithms, along the last dimension.

    ``sigma_m`` is the sum of the products of all m-element subsets. Only positive terms are added, in log space, so every entry
    is exact to rounding whatever the range of the values; the cost is O(kn). ``-inf`` stands for the number 0. The
    result can be differentiated any number of times; its first derivative is the probability that an element is in the
    subset, see :func:`lossmith.topk_probabilities`.

    Args:
        log_values: Logarithms of numbers >= 0, ``(..., n)``, in floating point.
        k: The highest degree, >= 0.

    Returns:
        Logarithms, ``(..., k + 1)``; -inf for degrees above n.

    Raises:
        ValueError: If ``log_values`` has no dimension or is not floating point, or ``k`` is not an integer >= 0.

    >>> elementary_symmetric(torch.tensor([1.0, 2.0, 3.0]).log(), 3).exp()
    tensor([ 1.0000,  6.0000, 11.0000,  6.0000])

    Reference: section 4.2 of Berrada, Zisserman and Kumar 2018, whose divide and conquer this is.
    """
    if log_values.dim() == 0 or not log_values.is_floating_point():
        got = f"{log_values.dtype} of shape {tuple(log_values.shape)}"
        raise ValueError(f"elementary_symmetric: log_values must be (..., n) and floating point, got {got}.")
    if isinstance(k, bool) or not isinstance(k, int) or k < 0:
        raise ValueError(f"elementary_symmetric: k must be an integer >= 0, got {k!r}.")
    values = in_double(log_values)
    polynomials = torch.stack([torch.zeros_like(values), values], -1)
    if values.shape[-1] == 0:
        polynomials = values.new_zeros(*values.shape[:-1], 1, 1)
    while polynomials.shape[-2] > 1:
        polynomials = _products_of_pairs(polynomials, k)
    result = polynomials.squeeze(-2)[..., : k + 1]
    missing = k + 1 - result.shape[-1]
    return torch.nn.functional.pad(result, (0, missing), value=-torch.inf).to(log_values.dtype)


def _products_of_pairs(polynomials: Tensor, k: int) -> Tensor:
    """Multiply neighbouring polynomials ``(..., n, degree + 1)``, up to ``x**k``; coefficients are given by their logarithms."""
    if polynomials.shape[-2] % 2:
        one = torch.full_like(polynomials[..., :1, :], -torch.inf)
        one[..., 0] = 0.0
        polynomials = torch.cat([polynomials, one], -2)
    first, second = polynomials[..., 0::2, :], polynomials[..., 1::2, :]
    degree = polynomials.shape[-1] - 1
    # windows[m, t] is the coefficient m - degree + t of the second, which meets the coefficient degree - t of the first.
    windows = torch.nn.functional.pad(second, (degree, degree), value=-torch.inf).unfold(-1, degree + 1, 1)
    return _log_sum_exp(windows[..., : k + 1, :] + first.flip(-1).unsqueeze(-2))


def _log_sum_exp(terms: Tensor) -> Tensor:
    """Return ``torch.logsumexp`` along the last dimension, with derivatives also where all terms are -inf."""
    largest = terms.detach().amax(-1, keepdim=True)
    largest = torch.where(largest == -torch.inf, 0.0, largest)
    total = (terms - largest).exp().sum(-1)
    empty = total == 0
    return torch.where(empty, -torch.inf, torch.where(empty, 1.0, total).log() + largest.squeeze(-1))
