"""Hugging Face's Trainer under a study: a tiny BERT that learns from made-up sentences, with any loss.

``python examples/own_training_transformers.py`` takes minutes on two cores, ``--quick`` some seconds; it needs
``pip install transformers accelerate``. Put your own model, tokens and ``TrainingArguments`` in the place of these.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from torch import Tensor
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.trainer_utils import get_last_checkpoint
from transformers.utils.logging import disable_progress_bar

import lossmith
from lossmith.training import Trial

WORDS, LENGTH, CLASSES, ROWS = 60, 12, 3, 600


def sentences() -> tuple[Tensor, Tensor]:
    """Return sentences in which words of their class are five times as frequent as others."""
    draw = np.random.default_rng(0)
    labels = np.arange(ROWS) % CLASSES
    chances = np.ones((CLASSES, WORDS))
    for own in range(CLASSES):
        chances[own, own::CLASSES] = 5
    chances /= chances.sum(1, keepdims=True)
    words = np.stack([draw.choice(WORDS, LENGTH, p=chances[label]) for label in labels])
    return torch.tensor(words), torch.tensor(labels)


class Reports(TrainerCallback):
    """Tells the study after every epoch how good the model is on validation rows."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: dict[str, float], **_: Any) -> None:
        """Report, and end the training here if the study says so."""
        self.trial.report(round(state.epoch), accuracy=metrics["eval_accuracy"])


def train(trial: Trial) -> dict[str, Any]:
    """Train by the Trainer, whose loss is the trial's."""
    disable_progress_bar()
    words, labels = sentences()
    rows, test = train_test_split(np.arange(ROWS), test_size=0.25, random_state=trial.seed, stratify=labels)
    fit, validation = train_test_split(rows, test_size=0.25, random_state=trial.seed, stratify=labels[rows])
    noisy, checked = trial.labels(labels, fit), trial.labels(labels, validation)
    size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    model = BertForSequenceClassification(BertConfig(vocab_size=WORDS, num_labels=CLASSES, **size))
    arguments = TrainingArguments(
        output_dir=str(trial.folder),
        num_train_epochs=trial.settings["epochs"],
        learning_rate=trial.settings["learning_rate"],
        per_device_train_batch_size=32,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,
        use_cpu=trial.device.type == "cpu",
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
        seed=trial.seed,
    )
    trainer = Trainer(
        model,
        arguments,
        train_dataset=examples(words[fit], noisy),
        eval_dataset=examples(words[validation], checked),
        compute_loss_func=lambda outputs, labels, **_: trial.loss(outputs.logits, labels),
        compute_metrics=lambda found: {"accuracy": float((found.predictions.argmax(1) == found.label_ids).mean())},
        callbacks=[Reports(trial)],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(trial.folder)))
    logits = trainer.predict(examples(words[test], labels[test])).predictions
    return {"logits": logits, "labels": labels[test], "test_rows": test, "train_rows": len(rows)}


def examples(words: Tensor, labels: Tensor) -> list[dict[str, Tensor]]:
    """Return rows as the Trainer takes them."""
    return [{"input_ids": own, "labels": label} for own, label in zip(words, labels, strict=True)]


def main() -> None:
    """Compare two losses and print the answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two replicates of a few epochs")
    parser.add_argument("--output", type=Path, default=Path("studies/own-training-transformers"))
    options = parser.parse_args()
    size = {"seeds": 2, "epochs": 3, "trials": 1} if options.quick else {"seeds": 5, "epochs": 12, "trials": 6}
    study = lossmith.compare(
        train=train,
        losses=["ce", "gce"],
        noise=[0] if options.quick else [0, 0.4],
        tune={"learning_rate": (1e-4, 1e-2)},
        output=options.output,
        **size,
    )
    print(study.table())
    print(study.recommend())


if __name__ == "__main__":
    main()
