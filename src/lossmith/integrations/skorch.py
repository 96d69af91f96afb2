"""Losses as the criterion of skorch."""

from collections.abc import Callable
from typing import Any

from skorch import NeuralNetClassifier
from torch import Tensor

from lossmith.losses import ClassificationLoss

__all__ = ["LossmithNet"]


class LossmithNet(NeuralNetClassifier):  # type: ignore[misc]
    """A ``skorch.NeuralNetClassifier`` that predicts the probabilities that belong to its loss.

    skorch knows what turns the outputs of a module into probabilities for torch's own criteria alone, and returns logits for any
    other. Here ``predict_nonlinearity="auto"``, the default, asks the criterion, with the parameters that it has: a search over
    ``criterion__t2`` of the bi-tempered loss compares probabilities of different temperatures.

    Args:
        module: Turns inputs into logits.
        *args: What ``skorch.NeuralNetClassifier`` takes.
        criterion: A class of a loss, or a loss.
        **kwargs: What ``skorch.NeuralNetClassifier`` takes.
    """

    def __init__(self, module: Any, *args: Any, criterion: Any, **kwargs: Any) -> None:
        super().__init__(module, *args, criterion=criterion, **kwargs)

    def _get_predict_nonlinearity(self) -> Callable[[Tensor], Tensor]:
        criterion = getattr(self.criterion_, "_orig_mod", self.criterion_)  # of a compiled one
        if self.predict_nonlinearity == "auto" and isinstance(criterion, ClassificationLoss):
            return criterion.predict_proba
        inferred: Callable[[Tensor], Tensor] = super()._get_predict_nonlinearity()
        return inferred
