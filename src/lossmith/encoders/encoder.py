"""A pretrained network that turns the tokens of texts into vectors, one for each text."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from lossmith.encoders.model_folder import ModelFolder

__all__ = ["Encoder", "load_encoder", "padded", "token_lists"]

TOKENS_AT_ONCE = 1 << 12
"""Tokens, with those that fill up, that go through the network at once where nothing is learnt: it bounds the memory."""
LONGEST = 512
"""Tokens of a text that are read, where neither the folder nor the tokenizer says so."""
_NO_LIMIT = 10**6  # beyond which a tokenizer's limit means that it has none


class Encoder(nn.Module):
    """Tokens to vectors. A token is one more than its number in the vocabulary, and 0 where a text is over."""

    def __init__(self, network: nn.Module, pooling: str, *, normalized: bool = False, padding: int = 0) -> None:
        super().__init__()
        self.network = network
        self.pooling, self.normalized, self.padding = pooling, normalized, padding
        self.out_features = int(network.config.hidden_size)  # type: ignore[union-attr,arg-type]

    def forward(self, tokens: Tensor) -> Tensor:
        """Return a vector for each text.

        Args:
            tokens: ``(texts, length)``.

        Returns:
            ``(texts, out_features)``; without gradients texts of like length go through the network together.
        """
        if torch.is_grad_enabled():
            return self._vectors(tokens)
        lengths = (tokens != 0).sum(1)
        order = lengths.argsort(stable=True)
        found = torch.empty(len(tokens), self.out_features, device=tokens.device)
        for part in _parts(order, lengths[order].tolist()):
            found[part] = self._vectors(tokens[part])
        return found

    def _vectors(self, tokens: Tensor) -> Tensor:
        tokens = tokens[:, : int((tokens != 0).sum(1).max())]
        mask = tokens != 0
        numbers = torch.where(mask, tokens - 1, self.padding)
        states: Tensor = self.network(input_ids=numbers, attention_mask=mask.long()).last_hidden_state
        vectors = _POOLED[self.pooling](states, mask)
        return nn.functional.normalize(vectors, dim=1) if self.normalized else vectors


def _parts(order: Tensor, lengths: Sequence[int]) -> Iterator[Tensor]:
    """Cut texts that are sorted by length into parts of a bounded number of tokens."""
    start = 0
    for end in range(1, len(lengths) + 1):
        if end == len(lengths) or (end + 1 - start) * lengths[end] > TOKENS_AT_ONCE:
            yield order[start:end]
            start = end


def _mean(states: Tensor, mask: Tensor) -> Tensor:
    weights = mask.unsqueeze(2).to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1)


def _first(states: Tensor, _: Tensor) -> Tensor:
    return states[:, 0]


def _largest(states: Tensor, mask: Tensor) -> Tensor:
    return states.masked_fill(~mask.unsqueeze(2), -torch.inf).amax(1)


def _last(states: Tensor, mask: Tensor) -> Tensor:
    return states[torch.arange(len(states), device=states.device), mask.sum(1) - 1]


_POOLED = {"mean": _mean, "cls": _first, "max": _largest, "last": _last}


def token_lists(folder: ModelFolder, texts: Sequence[str]) -> list[list[int]]:
    """Return the tokens of texts, cut at the longest that the model reads.

    Args:
        folder: The model.
        texts: Any texts.

    Returns:
        For each text its tokens, one at least, each one more than its number in the vocabulary.

    Raises:
        ModuleNotFoundError: If transformers is not installed.
        ValueError: If the tokenizer cannot be used.
    """
    tokenizer = _loaded(folder, "AutoTokenizer", "tokenizer")
    own = tokenizer.model_max_length
    longest = folder.longest or (own if own < _NO_LIMIT else LONGEST)
    whole = [text.encode("utf-8", "replace").decode() for text in texts]  # half a sign, which UTF-8 does not have, is a "?"
    numbers = tokenizer(whole, truncation=True, max_length=min(longest, own), padding=False)["input_ids"]
    return [[number + 1 for number in text] or [1] for text in numbers]


def padded(tokens: Sequence[Sequence[int]]) -> Tensor:
    """Return tokens as numbers ``(texts, length of the longest)``, 0 where a text is over.

    >>> padded([[5, 7], [3]])
    tensor([[5, 7],
            [3, 0]])
    """
    return nn.utils.rnn.pad_sequence([torch.tensor(text) for text in tokens], batch_first=True)


def load_encoder(folder: ModelFolder) -> Encoder:
    """Return the network of a folder with its weights, in evaluation mode.

    Args:
        folder: The model.

    Returns:
        The encoder, in single precision.

    Raises:
        ModuleNotFoundError: If transformers is not installed.
        ValueError: If the architecture is unknown, or weights are missing or damaged.
    """
    options = {"use_safetensors": True, "dtype": torch.float32, "output_loading_info": True}
    network, info = _loaded(folder, "AutoModel", "model", **options)
    if getattr(network, "pooler", None) is not None:
        network.pooler = None  # its output is not used, and many folders have no weights for it
    missing = sorted(name for name in info["missing_keys"] if not name.startswith("pooler."))
    if missing:
        raise ValueError(f"encoder: {folder.path} lacks {len(missing)} weights of its model, such as {missing[0]}.")
    if network.config.is_encoder_decoder:
        network = network.get_encoder()
    padding = network.config.pad_token_id
    return Encoder(network.eval(), folder.pooling, normalized=folder.normalized, padding=padding or 0)


def _loaded(folder: ModelFolder, kind: str, what: str, **options: Any) -> Any:
    """Load a part of a model from disk alone, and turn whatever is wrong with it into one line."""
    transformers = _transformers()
    try:
        with _quiet(transformers):
            part = getattr(transformers, kind)
            return part.from_pretrained(folder.path, local_files_only=True, trust_remote_code=False, **options)
    except Exception as error:  # libraries below raise errors of many kinds
        reason = " ".join(str(error).split()).partition(". ")[0].rstrip(".")
        raise ValueError(f"encoder: the {what} in {folder.path} cannot be used: {reason}.") from error


def _transformers() -> Any:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read where it is imported first: nothing is fetched behind the user's back
    try:
        import transformers
    except ModuleNotFoundError as error:
        needed = f"encoder: needs {error.name}, which is not installed"
        raise ModuleNotFoundError(f"{needed}: pip install 'lossmith[encoders]'.", name=error.name) from error
    return transformers


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Keep a library from drawing bars of its own and from remarks on weights that are not used here."""
    logging = transformers.utils.logging
    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()
