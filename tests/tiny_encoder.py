"""A folder like those of Hugging Face models, with a BERT of random weights that is small enough for tests."""

import json
from pathlib import Path

import pytest

WORDS = ("good", "fine", "great", "bad", "awful", "poor", "the", "film", "was", "and", "not", "very", "plot", "actor", "music")


def tiny_encoder(folder: Path, *, pooling: str | None = None, normalized: bool = False, seed: int = 0) -> Path:
    """Write configuration, weights and a WordPiece tokenizer; with a pooling, as sentence-transformers does."""
    transformers = pytest.importorskip("transformers", reason="the extra 'encoders' is not installed")
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS)) + "\n")
    transformers.BertTokenizer(str(folder / "vocab.txt"), model_max_length=24).save_pretrained(folder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=5 + len(WORDS), max_position_embeddings=24, initializer_range=0.5, **sizes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        transformers.BertModel(config).save_pretrained(folder)
    if pooling is not None:
        _write_modules(folder, pooling, normalized=normalized)
    return folder


def _write_modules(folder: Path, pooling: str, *, normalized: bool) -> None:
    kinds = ["Transformer", "Pooling", *(["Normalize"] if normalized else [])]
    paths = ["", "1_Pooling", "2_Normalize"]
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": path} for kind, path in zip(kinds, paths, strict=False)]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{pooling}": True, "pooling_mode_other": False}))


def reviews(rows: int = 60) -> tuple[list[str], list[str]]:
    """Return short texts, no two alike, and which of two classes they are of."""
    good, bad, rest = WORDS[:3], WORDS[3:6], WORDS[6:]
    texts, labels = [], []
    for row in range(rows):
        side = (good, bad)[row % 2]
        words = [rest[(row * step) % len(rest)] for step in (1, 2, 5)]
        texts.append(" ".join([*words, side[row % 3], "very " * (row // 6), side[(row // 2) % 3]]))
        labels.append(("bad", "good")[row % 2 == 0])
    return texts, labels
