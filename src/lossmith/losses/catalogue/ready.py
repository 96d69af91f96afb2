"""Every loss of the catalogue as it can be called at once, with any number of classes."""

from lossmith.expressions.printed_form import printed_call
from lossmith.losses.catalogue import LOSSES
from lossmith.losses.contract.needs_data import NeedsData

__all__ = ["needs_no_data", "ready_expression", "ready_losses"]


def ready_expression(name: str) -> str:
    """Return the expression of a loss by which it can be called: its name, and an example of what the data would decide.

    Args:
        name: The name of a loss in the catalogue.

    Returns:
        An expression for ``lossmith.make_loss``.

    Raises:
        KeyError: If there is no such loss.

    >>> ready_expression("ce"), ready_expression("balanced-softmax")
    ('ce', 'balanced-softmax(imbalance=0.1)')
    """
    loss = LOSSES[name]
    return printed_call(name, loss.example if issubclass(loss, NeedsData) else {})


def ready_losses() -> list[str]:
    """Return the expressions of all losses of the catalogue, in its order."""
    return [ready_expression(name) for name in LOSSES]


def needs_no_data(name: str) -> bool:
    """Return whether a loss of the catalogue is complete without anything that the training rows decide.

    Args:
        name: The name of a loss in the catalogue.

    Returns:
        True if it is.
    """
    return not issubclass(LOSSES[name], NeedsData)
