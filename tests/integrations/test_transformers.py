"""Losses in the real Trainer, beside its own cross-entropy."""

import pytest
import torch

pytest.importorskip("accelerate", reason="Trainer needs accelerate; make test-integrations has it")
transformers = pytest.importorskip("transformers")

from lossmith import make_loss  # noqa: E402
from lossmith.integrations.transformers import compute_loss  # noqa: E402

VOCABULARY, LENGTH, ROWS = 29, 12, 16


def language_model():
    transformers.set_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=LENGTH,
        pad_token_id=0,
    )
    return transformers.LlamaForCausalLM(config)


def classifier(problem_type="single_label_classification"):
    transformers.set_seed(0)
    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=LENGTH,
        num_labels=4,
        problem_type=problem_type,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return transformers.BertForSequenceClassification(config)


def texts():
    """Rows of tokens of which very different numbers are labels."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(1, VOCABULARY, (ROWS, LENGTH), generator=generator)
    labels = tokens.clone()
    for row in range(ROWS):
        labels[row, : (5 * row) % LENGTH] = -100
    return [{"input_ids": tokens[row], "labels": labels[row]} for row in range(ROWS)]


def classified_texts(several=False):
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(1, VOCABULARY, (ROWS, LENGTH), generator=generator)
    labels = (
        torch.randint(2, (ROWS, 4), generator=generator).float() if several else torch.randint(4, (ROWS,), generator=generator)
    )
    return [{"input_ids": tokens[row], "labels": labels[row]} for row in range(ROWS)]


def trained(model, rows, folder, loss=None, *, smoothing=0.0, pieces=3):
    """Train two steps of six rows each, and return the losses that were logged and the weights."""
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=6 // pieces,
        gradient_accumulation_steps=pieces,
        max_steps=2,
        learning_rate=0.01,
        optim="sgd",
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        label_smoothing_factor=smoothing,
    )
    trainer = transformers.Trainer(model, arguments, train_dataset=rows, eval_dataset=rows, compute_loss_func=loss)
    trainer.train()
    logged = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return [*logged, trainer.evaluate()["eval_loss"]], torch.cat([weight.detach().flatten() for weight in model.parameters()])


def assert_same(own, ours):
    assert ours[0] == pytest.approx(own[0], rel=1e-6)
    torch.testing.assert_close(ours[1], own[1], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_language_models_are_trained_as_trainer_would(tmp_path, smoothing):
    own = trained(language_model(), texts(), tmp_path, smoothing=smoothing)
    ours = trained(language_model(), texts(), tmp_path, compute_loss(make_loss("ce", label_smoothing=smoothing)))
    assert_same(own, ours)
    assert own[0][0] == pytest.approx(3.4, abs=0.3)  # log(29), not three times as much


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_classifiers_are_trained_as_trainer_would_without_accumulation(tmp_path, smoothing):
    """With it Trainer's own loss of classifiers is three times as much: models average, and Trainer takes it for a sum."""
    own = trained(classifier(), classified_texts(), tmp_path, smoothing=smoothing, pieces=1)
    ours = trained(classifier(), classified_texts(), tmp_path, compute_loss(make_loss("ce", label_smoothing=smoothing)))
    assert_same(own, ours)


def test_several_labels_a_row(tmp_path):
    """Trainer's own loss is the mean over all labels, ours the sum over those of a row: four times as much."""
    kind, rows = "multi_label_classification", classified_texts(several=True)
    own = trained(classifier(kind), rows, tmp_path, pieces=1)
    ours = trained(classifier(kind), rows, tmp_path, compute_loss("sigmoid"))
    assert ours[0][0] == pytest.approx(4 * own[0][0], rel=1e-6)


def test_any_other_loss_trains(tmp_path):
    losses, _ = trained(language_model(), texts(), tmp_path, compute_loss("dft"))
    assert losses[0] == pytest.approx(1 - 1 / VOCABULARY, abs=0.02)
