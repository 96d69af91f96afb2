"""What both corrections are: a wrapper with a rate of wrong labels or a matrix of them."""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.needs_data import NeedsData
from lossmith.losses.contract.wrapper import WrapperLoss
from lossmith.losses.correction.matrices import MATRICES, Estimate, GivenMatrix, LabelMatrix, as_label_matrix
from lossmith.losses.cross_entropy import CrossEntropyLoss

__all__ = ["DEFAULT_RATE", "CorrectedLoss"]

DEFAULT_RATE = 0.2


class CorrectedLoss(NeedsData, WrapperLoss):
    """Base of losses around others that know what is taken for what."""

    limits = {"rate": Limits(0.0, 1.0, high_open=True, optional=True, usual=(0.05, 0.45))}
    from_data = {"matrix": "what is taken for what among the training rows"}
    vocabularies: ClassVar[Mapping[str, Any]] = {"matrix": MATRICES}
    """What can be written for a parameter, by name."""
    rate: float | None
    matrix: LabelMatrix | None

    def __init__(self, loss: ClassificationLoss | None, matrix: Any, rate: float | None, options: Mapping[str, Any]) -> None:
        super().__init__(loss, CrossEntropyLoss, options)
        owner = type(self).__name__
        if matrix is not None and rate is not None:
            raise ValueError(f"{owner}: give either matrix or rate, got both, rate={rate}.")
        self.matrix = matrix
        self.rate = DEFAULT_RATE if matrix is None and rate is None else rate

    def __setattr__(self, name: str, value: Any) -> None:
        """Check matrices whenever they are set, and refuse a rate beside one, which would not count."""
        owner = type(self).__name__
        if name == "rate" and value is not None and self.matrix is not None:
            raise ValueError(f"{owner}: rate must be None where there is a matrix, got {value}.")
        super().__setattr__(name, as_label_matrix(value, owner) if name == "matrix" else value)

    def lacking(self) -> tuple[str, ...]:
        """Return that the matrix is missing where it is to be estimated."""
        return ("matrix",) if isinstance(self.matrix, Estimate) else ()

    def check_call(self, logits: Tensor, target: Tensor) -> None:
        """Raise an error for logits that the matrix does not fit.

        Args:
            logits: Logits ``(N, C, ...)``.
            target: Class indices or probabilities.

        Raises:
            ValueError: If the matrix is for another number of classes, or has not been estimated.
        """
        super().check_call(logits, target)
        if isinstance(self.matrix, GivenMatrix) and len(self.matrix.matrix) != logits.shape[1]:
            got = tuple(self.matrix.matrix.shape)
            raise ValueError(f"{type(self).__name__}: matrix must have a row for each of {logits.shape[1]} classes, got {got}.")
