"""Fine-tune a small causal language model on text in which many words are wrong, through a final layer that keeps no logits.

The text is Python's own language reference, which comes with Python. A small Llama, made from a config, learns its first half
as it is. It is then fine-tuned on the second, in which a share of the words to be predicted were replaced by any others: with
every loss from the same start. ``lossmith.linear_loss`` makes the logits of the vocabulary a few rows at a time.
``python examples/language_model.py`` takes five minutes on one core, ``--quick`` seconds; it needs ``pip install transformers``.
"""

import argparse
import copy
import re
from collections import Counter
from pydoc_data.topics import topics

import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

import lossmith

LENGTH = 64
BATCH = 16
UNKNOWN = 0
TEST_ROWS = 96


def text(vocabulary: int) -> Tensor:
    """Return the language reference as shuffled rows of words and signs; those too rare for the vocabulary are unknown."""
    words = re.findall(r"\w+|[^\w\s]", " ".join(topics[name] for name in sorted(topics)))
    known = [word for word, _ in Counter(words).most_common(vocabulary - 1)]
    number = {word: place for place, word in enumerate(known, start=1)}
    tokens = torch.tensor([number.get(word, UNKNOWN) for word in words])
    rows = tokens[: len(tokens) // LENGTH * LENGTH].view(-1, LENGTH)
    return rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))]


def with_wrong_words(rows: Tensor, share: float, vocabulary: int) -> Tensor:
    """Return the targets of rows, a share of which are any words instead."""
    generator = torch.Generator().manual_seed(1)
    wrong = torch.rand(rows.shape, generator=generator) < share
    return torch.where(wrong, torch.randint(vocabulary, rows.shape, generator=generator), rows)


def fresh_model(vocabulary: int) -> LlamaForCausalLM:
    """Return a model of two layers whose final layer has the weights of its first."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=96,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=LENGTH,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
    )
    return LlamaForCausalLM(config)


def loss_of(model: LlamaForCausalLM, rows: Tensor, target: Tensor, loss: lossmith.losses.ClassificationLoss) -> Tensor:
    """Return the loss of the next words: the model without its final layer, and that layer with the loss."""
    features = model.model(rows[:, :-1]).last_hidden_state
    return lossmith.linear_loss(features, model.lm_head.weight, target[:, 1:], loss)


def train(model: LlamaForCausalLM, rows: Tensor, target: Tensor, expression: str, *, epochs: int, rate: float) -> None:
    """Train a model by a loss."""
    loss = lossmith.make_loss(expression)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    steps = epochs * (len(rows) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    torch.manual_seed(2)
    for _ in track(range(steps), expression, console=Console(stderr=True), transient=True):
        batch = torch.randint(len(rows), (BATCH,))
        optimizer.zero_grad()
        loss_of(model, rows[batch], target[batch], loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


@torch.no_grad()
def quality(model: LlamaForCausalLM, rows: Tensor) -> tuple[float, float]:
    """Return how many of the next words are right, and the mean negative log-likelihood, both of text without wrong words."""
    logits = model(rows[:, :-1]).logits.flatten(0, 1)
    target = rows[:, 1:].flatten()
    accuracy = (logits.argmax(1) == target).double().mean().item()
    return accuracy, lossmith.CrossEntropyLoss()(logits, target).item()


def main() -> None:
    """Train, fine-tune with every loss, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--losses", nargs="+", default=["ce", "gce(q=0.3)", "gce(q=0.7)", "el"])
    parser.add_argument("--wrong", type=float, default=0.4, help="share of wrong words (default: 0.4)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the vocabulary, a quarter of the text")
    options = parser.parse_args()
    vocabulary, epochs, share = (800, 2, 4) if options.quick else (8000, 8, 1)
    rows = text(vocabulary)
    rows, test = rows[TEST_ROWS : len(rows) // share], rows[:TEST_ROWS]
    first, second = rows.tensor_split(2)
    model = fresh_model(vocabulary)
    train(model, first, first, "ce", epochs=epochs, rate=3e-3)
    print(f"{vocabulary} words, {rows.numel()} of text, {options.wrong:.0%} of those to be predicted in its second half wrong\n")
    print("| fine-tuned with | right next words | negative log-likelihood |\n|---|---|---|")
    print(row("nothing", *quality(model, test)))
    target = with_wrong_words(second, options.wrong, vocabulary)
    for expression in options.losses:
        tuned = copy.deepcopy(model)
        train(tuned, second, target, expression, epochs=epochs, rate=1e-3)
        print(row(expression, *quality(tuned, test)), flush=True)


def row(name: str, accuracy: float, nll: float) -> str:
    """Return a line of the table."""
    return f"| {name} | {accuracy:.1%} | {nll:.2f} |"


if __name__ == "__main__":
    main()
