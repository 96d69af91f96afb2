"""Calls that mean something else to a softmax than whoever made them may think: said once, where that costs next to nothing."""

import warnings
from typing import ClassVar, Protocol

from torch import Tensor

from lossmith.kernels import Formula, Terms
from lossmith.torch_compat import is_traced

__all__ = ["LOOKS", "warn_of_other_meaning"]

LOOKS = 8
"""So many calls of a loss are looked at: who gives several labels at once does so from the beginning."""
_MORE_THAN_ONE = 1.01


class _Loss(Protocol):
    name: ClassVar[str]

    def formula(self) -> Formula: ...


def warn_of_other_meaning(loss: "_Loss", logits: object, target: object) -> bool:
    """Warn of logits of a single class, and of targets with several labels, for a loss by which one class is true.

    Args:
        loss: The loss, by its class and as it is written.
        logits: What was given as logits.
        target: What was given as target.

    Returns:
        Whether there was reason to.
    """
    if not isinstance(logits, Tensor) or not isinstance(target, Tensor) or not logits.is_cpu or is_traced():
        return False
    if logits.dim() == 2 and logits.shape[1] == 1:
        form = repr(_form(loss))
        words = f"logits (N, 1) have one class, whose probability is always 1; one logit per label is for BinaryLoss({form})"
    elif _has_several_labels(target, logits):
        words = f"some targets add up to more than 1; several labels at once are for multi-label({_form(loss)})"
    else:
        return False
    warnings.warn(f"{type(loss).__name__}: {words}.", stacklevel=6)
    return True


def _form(loss: _Loss) -> str:
    """Return the name of a loss that has a form for several labels: its own, or that of cross-entropy."""
    formula = loss.formula()
    is_plain = isinstance(formula, Terms) and not any(term.normalized for term in formula.terms)
    return loss.name if is_plain and loss.name != "sum" else "ce"


def _has_several_labels(target: Tensor, logits: Tensor) -> bool:
    if not target.is_floating_point() or target.shape != logits.shape or target.dim() < 2 or not target.numel():
        return False
    try:
        return bool((target.detach().sum(1) > _MORE_THAN_ONE).any())
    except RuntimeError:  # inside torch.vmap values cannot be read
        return False
