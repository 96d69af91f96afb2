"""Errors on damaged inputs, and how they compare with those of another model."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lossmith.analysis.arrays import Array, Numbers
from lossmith.analysis.corruptions import SEVERITIES, corruptions_for
from lossmith.analysis.scores import accuracy
from lossmith.data.sparse_rows import Inputs

__all__ = ["CorruptionErrors", "corruption_errors", "mean_corruption_error"]


@dataclass(frozen=True, eq=False)
class CorruptionErrors:
    """Error rates on damaged inputs."""

    clean: float
    """On the inputs as they are."""
    corruptions: tuple[str, ...]
    errors: Array
    """``(corruptions, severities)``."""

    @property
    def accuracy(self) -> float:
        """Return the accuracy averaged over corruptions and severities."""
        return float(1.0 - self.errors.mean())


def corruption_errors(
    predict: Callable[[Inputs], Numbers], inputs: Inputs, labels: Numbers, *, seed: int = 0
) -> CorruptionErrors:
    """Return the errors of a model on inputs damaged in every way that suits them, at five severities.

    ``predict`` returns classes ``(n,)`` or scores ``(n, C)`` for inputs. Every model is shown the same damaged inputs.

    Args:
        predict: Turns inputs into classes ``(n,)`` or scores ``(n, C)``.
        inputs: Images ``(n, c, h, w)``, a table ``(n, d)`` or sparse rows, which lose a share of their entries.
        labels: The class of each example, ``(n,)``.
        seed: Draws the damage.

    Returns:
        The error rates on clean inputs and by corruption and severity.

    Raises:
        ValueError: If the inputs are neither images nor a table, or lengths do not match.

    >>> import torch
    >>> errors = corruption_errors(lambda inputs: (inputs[:, 0] > 0.5).long(), torch.tensor([[0.0], [1.0]]), [0, 1])
    >>> errors.clean, errors.corruptions
    (0.0, ('gaussian-noise', 'impulse-noise', 'missing'))
    """
    if inputs.dim() not in (2, 4):
        shape = tuple(inputs.shape)
        raise ValueError(f"corruption_errors: inputs must be images (n, c, h, w) or a table (n, d), got shape {shape}.")
    corruptions = corruptions_for(inputs)
    errors = [
        [1.0 - accuracy(predict(damage(inputs, severity, seed=seed)), labels) for severity in SEVERITIES]
        for damage in corruptions
    ]
    clean = 1.0 - accuracy(predict(inputs), labels)
    return CorruptionErrors(clean, tuple(damage.name for damage in corruptions), np.array(errors))


def mean_corruption_error(errors: CorruptionErrors, reference: CorruptionErrors) -> float:
    """Return the errors relative to those of a reference, a model trained with cross-entropy: less than 1 is more robust.

    For each corruption the errors are summed over severities before they are divided, and the quotients are averaged. Where the
    reference makes no error the quotient is 1 if there is none here either, and infinite otherwise.

    Args:
        errors: Those of the model in question.
        reference: Those of the model to compare with, on the same corruptions.

    Returns:
        The mean quotient over corruptions.

    Raises:
        ValueError: If the corruptions differ.

    >>> few = CorruptionErrors(0.0, ("blur",), np.array([[0.1, 0.2, 0.3, 0.4, 0.5]]))
    >>> many = CorruptionErrors(0.0, ("blur",), np.array([[0.2, 0.4, 0.6, 0.8, 1.0]]))
    >>> mean_corruption_error(few, many)
    0.5

    Reference: Hendrycks and Dietterich 2019, section 4.
    """
    if errors.corruptions != reference.corruptions:
        names = ", ".join(reference.corruptions), ", ".join(errors.corruptions)
        raise ValueError(f"mean_corruption_error: errors must be of the same corruptions, {names[0]}, got {names[1]}.")
    ours, theirs = errors.errors.sum(1), reference.errors.sum(1)
    beyond = np.where(ours > 0.0, np.inf, 1.0)
    return float(np.where(theirs > 0.0, ours / np.where(theirs > 0.0, theirs, 1.0), beyond).mean())
