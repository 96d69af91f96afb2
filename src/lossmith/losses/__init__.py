"""The losses, one family a file, and the catalogue that lists them all."""

from lossmith.losses import catalogue
from lossmith.losses.bi_tempered import BinaryBiTemperedLoss
from lossmith.losses.binary import BinaryLoss
from lossmith.losses.catalogue import *
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.target_probability import TargetProbabilityLoss
from lossmith.losses.contract.top_k_prediction import topk_accuracy, topk_probabilities
from lossmith.losses.contract.weighted_sum import WeightedSum
from lossmith.losses.rare_classes.class_weights import class_balanced_weights

__all__ = [
    "BinaryBiTemperedLoss",
    "BinaryLoss",
    "ClassificationLoss",
    "TargetProbabilityLoss",
    "WeightedSum",
    "class_balanced_weights",
    "topk_accuracy",
    "topk_probabilities",
]
__all__ += catalogue.__all__


def __dir__() -> list[str]:
    return sorted(__all__)
