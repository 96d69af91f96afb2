"""The losses, one family a file, and the catalogue that lists them all."""

from typing import Unpack

from lossmith.losses.bi_tempered import BinaryBiTemperedLoss, BiTemperedLoss, TsallisLoss
from lossmith.losses.complement import ComplementEntropyLoss, ComplementObjective
from lossmith.losses.contract import ClassificationLoss, Options
from lossmith.losses.cross_entropy import CrossEntropyLoss
from lossmith.losses.expectation import CrossEntropyExpectationLoss, ExpectationLoss, MAELoss
from lossmith.losses.expression import ExpressionReader
from lossmith.losses.focal import FocalLoss
from lossmith.losses.generalized import (
    AsymmetricGeneralizedCrossEntropyLoss,
    GeneralizedCrossEntropyLoss,
    TruncatedGeneralizedCrossEntropyLoss,
)
from lossmith.losses.label_smoothing import LabelSmoothingLoss
from lossmith.losses.logit_bias import LogitBias
from lossmith.losses.logit_norm import LogitNormLoss
from lossmith.losses.logit_penalty import LogitPenaltyLoss
from lossmith.losses.maximum_probability import MaximumProbabilityCrossEntropyLoss
from lossmith.losses.normalized import NormalizedCrossEntropyLoss, NormalizedFocalLoss
from lossmith.losses.sigmoid import SigmoidCrossEntropyLoss
from lossmith.losses.squared_error import SquaredErrorLoss
from lossmith.losses.symmetric import SymmetricCrossEntropyLoss
from lossmith.losses.tamed import TamedCrossEntropyLoss
from lossmith.losses.target_probability import TargetProbabilityLoss
from lossmith.losses.top_k import HardTopKLoss, SmoothTopKLoss
from lossmith.losses.weighted_sum import (
    NormalizedCrossEntropyAGCELoss,
    NormalizedCrossEntropyMAELoss,
    NormalizedFocalMAELoss,
    WeightedSum,
)

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
        SquaredErrorLoss,
        ComplementEntropyLoss,
        ComplementObjective,
        LogitBias,
    )
}
"""Every loss by name. Command line, documentation, contract tests and benchmarks are derived from it."""

__all__ = [
    "LOSSES",
    "AsymmetricGeneralizedCrossEntropyLoss",
    "BiTemperedLoss",
    "BinaryBiTemperedLoss",
    "ClassificationLoss",
    "ComplementEntropyLoss",
    "ComplementObjective",
    "CrossEntropyExpectationLoss",
    "CrossEntropyLoss",
    "ExpectationLoss",
    "FocalLoss",
    "GeneralizedCrossEntropyLoss",
    "HardTopKLoss",
    "LabelSmoothingLoss",
    "LogitBias",
    "LogitNormLoss",
    "LogitPenaltyLoss",
    "MAELoss",
    "MaximumProbabilityCrossEntropyLoss",
    "NormalizedCrossEntropyAGCELoss",
    "NormalizedCrossEntropyLoss",
    "NormalizedCrossEntropyMAELoss",
    "NormalizedFocalLoss",
    "NormalizedFocalMAELoss",
    "SigmoidCrossEntropyLoss",
    "SmoothTopKLoss",
    "SquaredErrorLoss",
    "SymmetricCrossEntropyLoss",
    "TamedCrossEntropyLoss",
    "TargetProbabilityLoss",
    "TruncatedGeneralizedCrossEntropyLoss",
    "TsallisLoss",
    "WeightedSum",
    "make_loss",
]


def make_loss(expression: str, **options: Unpack[Options]) -> ClassificationLoss:
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
    """
    loss = ExpressionReader(expression, LOSSES, options).read()
    assert isinstance(loss, ClassificationLoss)
    return loss
