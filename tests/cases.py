"""What the contract is tested on: every loss of the catalogue, and further parameters of some."""

import os
from collections.abc import Collection

import pytest
import torch
from torch import Tensor

from lossmith import kernels, make_loss
from lossmith.kernels import formula
from lossmith.losses import LOSSES, ClassificationLoss
from lossmith.losses.catalogue.ready import ready_expression
from lossmith.torch_compat import makes_inputs_of_numbers

# Graphs that are compiled while a number of a loss changes: before torch 2.9 its first change compiles once more.
GRAPHS = 1 if makes_inputs_of_numbers else 2
# Defaults that need more classes than the small batches of these tests have.
SMALL = {"smooth-topk": "smooth-topk(k=2)", "hard-topk": "hard-topk(k=2)"}
MORE = (
    "gce(q=0)",
    "gce(q=1)",
    "truncated-gce(q=0.5, k=0.2)",
    "agce(b=0, q=0.5)",
    "agce(b=1.8, q=3)",
    "focal(gamma=0.5)",
    "focal(gamma=2, alpha=0.25)",
    "tamed-ce(alpha=1)",
    "ce-el(focus=0.5)",
    "ce-el(alpha=0.5, beta=2)",
    "nf(gamma=0.5, printed=true)",
    "poly(epsilon=-1)",
    "multi-label(focal)",
    "asl(gamma_neg=1, clip=0)",
    "ldam(scale=3, beta=0.9, imbalance=0.01)",
    "logit-adjusted(nce, tau=2, imbalance=0.01)",
    "0.5*ce + 2*mae",
    "1.0*nce + 20*mpce",
    "logit-bias(1.0*nce + 20*mae, epsilon=3)",
    "forward-correction(nce + gce(q=0.5), rate=0.4)",
    "forward-correction(ce, matrix=pair(0.3))",
    # Not around bi-tempered: it is evaluated for every class, for which tests of many classes have no memory.
    "backward-correction(gce(q=0.5), matrix=pair(0.1))",
    "backward-correction(logit-bias(gce, epsilon=1), rate=0.1)",
    "z-loss(logit-bias(bi-tempered, epsilon=1), beta=0.1)",
)


def contract_cases() -> tuple[str, ...]:
    """Return what the contract is tested on, for the losses that the catalogue has now."""
    return tuple(SMALL.get(name, ready_expression(name)) for name in LOSSES) + MORE


CASES = contract_cases()


IS_REFERENCE = kernels.losses is formula.losses
"""Whether the plain formulas run, without the kernels for processors."""
IS_INTERPRETED = os.environ.get("LOSSMITH_KERNELS") == "triton"
"""Whether Triton's kernels run in its interpreter, slowly."""
# What single precision loses in the plain formulas, and the kernels have from a second look in double precision.
ROUNDED_IN_LONG_SUMS = ("el", "gce", "agce", "agce(b=1e-5, q=0.5)", "nce", "nce-mae", "nf")
ROUNDED_FAR_FROM_THE_TARGET = ("nce", "nf", "nce-mae", "nce-agce", "nf-mae", "nce + 2*nf")
ROUNDED_WITH_PROBABILITIES = ("mpce",)


def only_by_kernels(expression: object, rounded: Collection[object]) -> None:
    """Skip a test of exactness that the plain formula of a loss cannot pass."""
    if IS_REFERENCE and expression in rounded:
        pytest.skip("exact by the kernels alone")


def expected_over_classes(loss: ClassificationLoss) -> bool:
    """Whether probability targets mean the expected loss over the classes."""
    return type(loss).weighted_soft_losses is ClassificationLoss.weighted_soft_losses


def class_losses(expression: str, logits: Tensor) -> Tensor:
    """Return what each example would cost under each label, ``(N, C, ...)``."""
    loss = make_loss(expression, reduction="none")
    labels = torch.zeros_like(logits.select(1, 0), dtype=torch.long)
    return torch.stack([loss(logits, labels + label) for label in range(logits.shape[1])], dim=1)
