"""The catalogue: every loss by its name, and how one is made from text."""

from collections.abc import Sequence
from typing import Unpack

import torch
from torch import Tensor, nn

from lossmith.expressions.addable import Addable
from lossmith.expressions.reader import ExpressionReader
from lossmith.losses.bi_tempered import BiTemperedLoss, TsallisLoss
from lossmith.losses.complement import ComplementEntropyLoss, ComplementObjective
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.needs_data import as_counts, fill_in
from lossmith.losses.contract.options import Options
from lossmith.losses.contract.target_probability import TargetProbabilityLoss
from lossmith.losses.contract.weighted_sum import WeightedSum, sum_of
from lossmith.losses.correction.backward import BackwardCorrection
from lossmith.losses.correction.forward import ForwardCorrection
from lossmith.losses.correction.matrices import MATRICES
from lossmith.losses.cross_entropy import CrossEntropyLoss, SymmetricCrossEntropyLoss, TamedCrossEntropyLoss
from lossmith.losses.expectation import CrossEntropyExpectationLoss, ExpectationLoss, MAELoss
from lossmith.losses.focal import FocalLoss
from lossmith.losses.generalized import (
    AsymmetricGeneralizedCrossEntropyLoss,
    GeneralizedCrossEntropyLoss,
    TruncatedGeneralizedCrossEntropyLoss,
)
from lossmith.losses.label_smoothing import LabelSmoothingLoss
from lossmith.losses.logits.bias import LogitBias
from lossmith.losses.logits.norm import LogitNormLoss
from lossmith.losses.logits.penalty import LogitPenaltyLoss, ZLoss
from lossmith.losses.maximum_probability import MaximumProbabilityCrossEntropyLoss
from lossmith.losses.multi_label.asymmetric import AsymmetricLoss
from lossmith.losses.multi_label.multi_label import MultiLabelLoss
from lossmith.losses.multi_label.sigmoid import SigmoidCrossEntropyLoss
from lossmith.losses.normalized import (
    NormalizedCrossEntropyAGCELoss,
    NormalizedCrossEntropyLoss,
    NormalizedCrossEntropyMAELoss,
    NormalizedFocalLoss,
    NormalizedFocalMAELoss,
)
from lossmith.losses.poly import PolyLoss
from lossmith.losses.rare_classes.ldam import LDAMLoss
from lossmith.losses.rare_classes.logit_adjusted import BalancedSoftmaxLoss, LogitAdjustedLoss
from lossmith.losses.squared_error import SquaredErrorLoss
from lossmith.losses.top_k import HardTopKLoss, SmoothTopKLoss

LOSSES: dict[str, type[ClassificationLoss]] = {
    loss.name: loss
    for loss in (
        CrossEntropyLoss,
        MAELoss,
        ExpectationLoss,
        GeneralizedCrossEntropyLoss,
        TruncatedGeneralizedCrossEntropyLoss,
        AsymmetricGeneralizedCrossEntropyLoss,
        SymmetricCrossEntropyLoss,
        FocalLoss,
        PolyLoss,
        TamedCrossEntropyLoss,
        MaximumProbabilityCrossEntropyLoss,
        CrossEntropyExpectationLoss,
        BiTemperedLoss,
        TsallisLoss,
        NormalizedCrossEntropyLoss,
        NormalizedFocalLoss,
        NormalizedCrossEntropyMAELoss,
        NormalizedFocalMAELoss,
        NormalizedCrossEntropyAGCELoss,
        SmoothTopKLoss,
        HardTopKLoss,
        LabelSmoothingLoss,
        LogitPenaltyLoss,
        LogitNormLoss,
        SigmoidCrossEntropyLoss,
        MultiLabelLoss,
        AsymmetricLoss,
        SquaredErrorLoss,
        ComplementEntropyLoss,
        ComplementObjective,
        BalancedSoftmaxLoss,
        LDAMLoss,
        LogitAdjustedLoss,
        LogitBias,
        ZLoss,
        ForwardCorrection,
        BackwardCorrection,
    )
}
"""Every loss by name. Command line, documentation, contract tests and benchmarks are derived from it."""

OTHER_NAMES: dict[str, type[ClassificationLoss]] = {"dft": ExpectationLoss}
"""What losses are called elsewhere, read as the loss of the catalogue: dynamic fine-tuning has the gradient of ``el``."""

# A checkpoint may hold a loss among its hyper-parameters, and load with `weights_only=True`; losses hold numbers and tensors.
torch.serialization.add_safe_globals([*LOSSES.values(), *MATRICES.values(), WeightedSum, nn.ModuleList])

__all__ = [
    "LOSSES",
    "AsymmetricGeneralizedCrossEntropyLoss",
    "AsymmetricLoss",
    "BackwardCorrection",
    "BalancedSoftmaxLoss",
    "BiTemperedLoss",
    "ComplementEntropyLoss",
    "ComplementObjective",
    "CrossEntropyExpectationLoss",
    "CrossEntropyLoss",
    "ExpectationLoss",
    "FocalLoss",
    "ForwardCorrection",
    "GeneralizedCrossEntropyLoss",
    "HardTopKLoss",
    "LDAMLoss",
    "LabelSmoothingLoss",
    "LogitAdjustedLoss",
    "LogitBias",
    "LogitNormLoss",
    "LogitPenaltyLoss",
    "MAELoss",
    "MaximumProbabilityCrossEntropyLoss",
    "MultiLabelLoss",
    "NormalizedCrossEntropyAGCELoss",
    "NormalizedCrossEntropyLoss",
    "NormalizedCrossEntropyMAELoss",
    "NormalizedFocalLoss",
    "NormalizedFocalMAELoss",
    "PolyLoss",
    "SigmoidCrossEntropyLoss",
    "SmoothTopKLoss",
    "SquaredErrorLoss",
    "SymmetricCrossEntropyLoss",
    "TamedCrossEntropyLoss",
    "TruncatedGeneralizedCrossEntropyLoss",
    "TsallisLoss",
    "ZLoss",
    "make_loss",
]


def _combined(terms: Sequence[tuple[float, ClassificationLoss]]) -> WeightedSum:
    """Return factors times losses as one sum; the terms of sums among them become terms of it."""
    return sum_of([(factor * own, part) for factor, loss in terms for own, part in loss.summands()])


ADDABLE_LOSSES = Addable(ClassificationLoss, _combined, tuple(Options.__annotations__))
"""What expressions can add and multiply."""


def make_loss(
    expression: str, *, counts: Tensor | Sequence[float] | None = None, **options: Unpack[Options]
) -> ClassificationLoss:
    """Read a loss from text, as the command line does, and give it the options of ``torch.nn.CrossEntropyLoss``.

    A name, a name with parameters, a sum of them, or a name with the parameters published for a number of classes:

    >>> make_loss("gce(q=0.5)", reduction="sum")
    gce(q=0.5, reduction=sum)
    >>> make_loss("1.0*nce + 20*mae")
    1.0*nce + 20.0*mae
    >>> make_loss("logit-bias(mae, epsilon=3.0)")
    logit-bias(mae, epsilon=3.0)
    >>> make_loss("nf-mae@100")
    nf-mae(alpha=1.0, beta=0.2)
    >>> make_loss("logit-adjusted(focal)", counts=[900, 100])
    logit-adjusted(focal(gamma=2.0), tau=1.0, counts=[900.0, 100.0])

    Args:
        expression: The loss, of a million characters, ten thousand names and a hundred parentheses within one another at most.
        counts: How many training rows each class has, for losses in it that want to know and were not told.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, for every loss in it.

    Returns:
        The loss; a sum of any number of losses is one :class:`WeightedSum` of them all.

    Raises:
        TypeError: If the expression is not text.
        ValueError: If it cannot be read, or a parameter is out of its range.
    """
    loss = ExpressionReader(expression, LOSSES | OTHER_NAMES, options, addable=ADDABLE_LOSSES).read()
    assert isinstance(loss, ClassificationLoss)
    fill_in(loss, {"counts": as_counts(counts, "make_loss")} if counts is not None else {})
    return loss
