"""What a loss is, apart from how it is run: a formula is data that every engine can read.

Logits are ``(N, C, ...)``, classes along dimension 1. A target holds class indices ``(N, ...)``, or a factor for the loss of
every class ``(N, C, ...)``, in which case the loss of a row is the sum over the classes of factor times loss.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from lossmith.kernels import reference
from lossmith.kernels.reference import Curve, Term
from lossmith.numerics.class_shares import log_shares

__all__ = [
    "Biased",
    "Curve",
    "Formula",
    "Reduction",
    "Rows",
    "Shifted",
    "Sum",
    "Term",
    "Terms",
    "biased",
    "losses",
    "mean",
    "reduced",
    "reduces",
]


class Formula(Protocol):
    """A loss with the parameters that it has at this moment."""

    def losses(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the loss of each row ``(N, ...)`` in plain operations of torch, differentiable any number of times.

        Args:
            logits: ``(N, C, ...)``, in single or double precision.
            target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.

        Returns:
            Losses ``(N, ...)``.
        """
        ...


class Terms(NamedTuple):
    """A sum of functions of the target's probability, some of them divided by their sum over the classes.

    Args:
        terms: The functions with their factors.
    """

    terms: tuple[Term, ...]

    def losses(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the sum of the terms for each row."""
        return reference.sum_of_terms(self.terms, logits, target)


class Rows(NamedTuple):
    """A function of rows of logits and their targets, with its parameters.

    Args:
        function: From logits, target and the parameters to the loss of each row.
        parameters: Keyword arguments of the function.
    """

    function: Callable[..., Tensor]
    parameters: Mapping[str, Any]

    def losses(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the function of each row."""
        return self.function(logits, target, **self.parameters)


class Sum(NamedTuple):
    """A weighted sum of formulas.

    Args:
        parts: Pairs of a factor and a formula, at least one.
    """

    parts: Sequence[tuple[float, Formula]]

    def losses(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the sum for each row."""
        losses = [factor * formula.losses(logits, target) for factor, formula in self.parts]
        return sum(losses[1:], start=losses[0])


class Biased(NamedTuple):
    """A formula for logits to which ``epsilon`` is added at the target.

    Args:
        formula: The formula of the biased logits.
        epsilon: The bias.
    """

    formula: Formula
    epsilon: float

    def losses(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the losses of the biased logits."""
        return self.formula.losses(biased(logits, target, self.epsilon), target)


class Shifted(NamedTuple):
    """A formula for logits to which something is added at every class: a multiple of the logarithm of its share.

    Args:
        formula: The formula of the shifted logits.
        tau: What logarithms are multiplied by.
        counts: How often each class was counted, ``(C,)``; or None.
        imbalance: In place of counts, how much less frequent the last class of a long tail is than the first.
    """

    formula: Formula
    tau: float
    counts: Tensor | None
    imbalance: float | None = None

    def shifted(self, logits: Tensor) -> Tensor:
        """Return the logits that the formula is for."""
        return logits + self.tau * log_shares(logits, self.counts, self.imbalance)

    def losses(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the losses of the shifted logits."""
        return self.formula.losses(self.shifted(logits), target)


class Reduction(NamedTuple):
    """What becomes of the losses of rows with class indices.

    Args:
        kind: ``"mean"``, ``"sum"`` or ``"none"``.
        ignore_index: Target of rows that do not count.
        weight: A factor for each class, or None.
        dtype: The precision of the result, or None for that in which it is computed.
    """

    kind: str = "none"
    ignore_index: int = -(1 << 62)
    weight: Tensor | None = None
    dtype: torch.dtype | None = None


def losses(formula: Formula, logits: Tensor, target: Tensor) -> Tensor:
    """Return the loss of each row, as the formula has it.

    Args:
        formula: The loss.
        logits: ``(N, C, ...)``, in single or double precision.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.

    Returns:
        Losses ``(N, ...)``.
    """
    return formula.losses(logits, target)


def mean(formula: Formula, logits: Tensor, target: Tensor, denominator: float | Tensor | None = None) -> Tensor:
    """Return the mean of the losses of all rows.

    Args:
        formula: The loss.
        logits: ``(N, C)``, in single or double precision.
        target: Class indices ``(N,)``, or a factor for every class ``(N, C)``.
        denominator: What their sum is divided by, instead of N.

    Returns:
        One number.
    """
    found = formula.losses(logits, target)
    return found.mean() if denominator is None else (found.sum() / denominator).to(found.dtype)


def reduces(logits: object) -> bool:  # noqa: ARG001
    """Return False: plain torch reduces losses one operation after the other."""
    return False


def reduced(formula: Formula, logits: Tensor, target: Tensor, reduction: Reduction) -> None:  # noqa: ARG001
    """Return nothing, as there is nothing that reduces."""
    return


def biased(logits: Tensor, target: Tensor, epsilon: float) -> Tensor:
    """Return logits with ``epsilon`` added at the class, or with epsilon times the probability added to every class.

    Args:
        logits: ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or probabilities ``(N, C, ...)``.
        epsilon: The bias.

    Returns:
        New logits of the same shape.
    """
    if target.is_floating_point():
        return logits + epsilon * target
    index = target.unsqueeze(1)
    # Multiplied rather than filled in, because a compiled multiplication serves every epsilon that a schedule sets.
    return logits.scatter_add(1, index, epsilon * torch.ones_like(index, dtype=logits.dtype))
