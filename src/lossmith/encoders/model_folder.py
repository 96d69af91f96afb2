"""Folders of Hugging Face models: whether all is there and nothing runs code, and what they say of pooling."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from lossmith.expressions.nearest import nearest
from lossmith.expressions.quotes import quote

__all__ = ["POOLINGS", "ModelFolder", "open_model_folder"]

POOLINGS = ("mean", "cls", "max", "last")
"""How the tokens of a text become one vector: their mean, the first, the largest of each number, or the last."""

_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt")
_TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
_THAT_COUNT = (".json", ".txt", ".model", ".safetensors")
_BYTES_AT_ONCE = 2**20

# The names that sentence-transformers has for them, in its older form and its newer one.
_OLD_NAMES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "last",
}
_NEW_NAMES = {"cls": "cls", "mean": "mean", "max": "max", "lasttoken": "last"}


@dataclass(frozen=True)
class ModelFolder:
    """A model on disk, as far as its small files tell."""

    path: Path
    """Where configuration, weights and tokenizer are."""
    pooling: str = "mean"
    """One of ``POOLINGS``."""
    normalized: bool = False
    """Whether every vector is brought to length 1."""
    longest: int | None = None
    """Tokens of a text that are read, where the folder says so."""
    notes: tuple[str, ...] = ()
    """What a user should know."""

    def digest(self) -> str:
        """Return a digest of everything that vectors depend on, by which those that were computed are known again.

        Returns:
            Sixteen hexadecimal digits.
        """
        files = sorted(file for file in self.path.iterdir() if file.suffix in _THAT_COUNT and file.is_file())
        stamps = tuple((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files)
        return _digest_of(stamps, repr((self.pooling, self.normalized, self.longest)))


@lru_cache(maxsize=8)
def _digest_of(files: tuple[tuple[str, int, int], ...], settings: str) -> str:
    """Return the digest of the content of files; their sizes and times tell whether it has to be read again."""
    digest = hashlib.blake2b(settings.encode(), digest_size=8)
    for path, size, _ in files:
        digest.update(f"{Path(path).name} {size}".encode())
        with open(path, "rb") as file:
            while block := file.read(_BYTES_AT_ONCE):
                digest.update(block)
    return digest.hexdigest()


def open_model_folder(folder: str | Path) -> ModelFolder:
    """Return what a folder says of its model, after making sure that it can be used.

    Weights must be safetensors, since pickles can run code, and the architecture one that needs no code of the folder's own.

    Args:
        folder: A model as ``save_pretrained`` of transformers or ``save`` of sentence-transformers writes it.

    Returns:
        The folder, with the pooling that it asks for, or the mean of all tokens.

    Raises:
        ValueError: If something is missing, or would run code.
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        beside = [other.name for other in root.parent.iterdir()] if root.parent.is_dir() else []
        got = "a file" if root.exists() else f"nothing there{nearest(root.name, beside)}"
        raise ValueError(f"encoder: {root} must be the folder of a Hugging Face model, got {got.rstrip('.')}.")
    modules = _modules(root)
    path = root / (modules[0]["path"] if modules else "")
    _check_content(path)
    behind = [module for module in modules[1:] if module["kind"] not in ("Pooling", "Normalize")]
    return ModelFolder(
        path,
        next((_pooling(root / module["path"] / "config.json") for module in modules if module["kind"] == "Pooling"), "mean"),
        any(module["kind"] == "Normalize" for module in modules) and not behind,
        _longest(path if (path / "sentence_bert_config.json").is_file() else root),
        tuple(f"encoder: layer {quote(module['path'])} behind pooling is left out" for module in behind),
    )


def _check_content(path: Path) -> None:
    if not (path / "config.json").is_file():
        raise ValueError(f"encoder: {path} has no config.json; it must be the folder of a Hugging Face model.")
    if not any(path.glob("*.safetensors")):
        pickled = sorted(file.name for file in _matching(path, _PICKLED))
        if pickled:
            raise ValueError(f"encoder: {path} must have its weights as safetensors, got {pickled[0]}, a pickle.")
        raise ValueError(f"encoder: {path} has no weights; expected model.safetensors.")
    if not any(_matching(path, _TOKENIZERS)):
        raise ValueError(f"encoder: {path} has no tokenizer; expected tokenizer.json, vocab.txt or the like.")
    if not isinstance(_read(path / "config.json").get("model_type"), str):
        raise ValueError(f"encoder: {path / 'config.json'} must name a model_type, got none.")


def _matching(path: Path, patterns: Iterable[str]) -> list[Path]:
    return [file for pattern in patterns for file in path.glob(pattern)]


def _modules(root: Path) -> list[dict[str, str]]:
    """Return kind and path of the parts that sentence-transformers puts behind one another; none where it was not there."""
    if not (root / "modules.json").is_file():
        return []
    listed = _read(root / "modules.json", list)
    try:
        return [{"kind": module["type"].rpartition(".")[2], "path": str(module["path"])} for module in listed]
    except (TypeError, KeyError, AttributeError):
        raise ValueError(f"encoder: {root / 'modules.json'} must list modules with type and path, got something else.") from None


def _pooling(file: Path) -> str:
    config = _read(file)
    newer = config.get("pooling_mode")
    names = [_NEW_NAMES.get(newer, newer)] if newer else [name for key, name in _OLD_NAMES.items() if config.get(key)]
    if len(names) != 1 or names[0] not in POOLINGS:
        got = " and ".join(map(str, names)) or "none of them"
        raise ValueError(f"encoder: {file} must ask for one pooling of {', '.join(POOLINGS)}, got {got}.")
    return str(names[0])


def _longest(path: Path) -> int | None:
    file = path / "sentence_bert_config.json"
    longest = _read(file).get("max_seq_length") if file.is_file() else None
    return longest if isinstance(longest, int) and longest > 0 else None


def _read(file: Path, kind: type = dict) -> Any:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        content = None
    if not isinstance(content, kind):
        raise ValueError(f"encoder: {file} must be JSON, got something else.")
    return content
