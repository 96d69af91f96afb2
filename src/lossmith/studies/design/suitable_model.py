"""Which built-in network suits data."""

from lossmith.data import PreparedData

__all__ = ["suitable_model"]

ROOM_FOR_CONVOLUTIONS = 16  # pixels a side


def suitable_model(data: PreparedData) -> str:
    """Return the model that suits the data: by whether it is words, n-grams, vectors, images or a table.

    Args:
        data: The data.

    Returns:
        The name of a model.
    """
    if data.kind == "table":
        return "tabular"
    if data.is_sparse:
        return "bag"
    if data.encoder is not None:
        return "encoder"
    if not data.inputs.is_floating_point():
        return "lstm"
    if data.texts is not None and data.texts.encoder is not None:
        return "hidden"
    return "small-cnn" if data.inputs.dim() == 4 and min(data.input_shape[1:]) >= ROOM_FOR_CONVOLUTIONS else "mlp"
