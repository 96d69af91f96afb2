"""The function for Trainer, without Trainer; tests/integrations has the real one."""

import pytest
import torch
import torch.nn.functional as F

from lossmith import make_loss
from lossmith.integrations.transformers import compute_loss

LOGITS = torch.randn(2, 5, 7, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([[-100, 1, 2, 3, -100], [6, -100, 0, 1, 1]])


def next_token_losses(logits):
    return F.cross_entropy(logits[:, :-1].reshape(-1, 7), LABELS[:, 1:].reshape(-1), reduction="sum")


@pytest.mark.parametrize("outputs", [{"logits": LOGITS}, (LOGITS, "hidden states")])
def test_tokens_predict_the_next_one(outputs):
    torch.testing.assert_close(compute_loss("ce")(outputs, LABELS), next_token_losses(LOGITS) / 6)
    for count in (10, torch.tensor(10), torch.tensor([[10], [10]])):
        found = compute_loss("ce")(outputs, LABELS, num_items_in_batch=count)
        torch.testing.assert_close(found, next_token_losses(LOGITS) / 10)


def test_other_models_are_not_shifted():
    expected = F.cross_entropy(LOGITS.flatten(0, 1), LABELS.flatten())
    torch.testing.assert_close(compute_loss("ce", shift=False)({"logits": LOGITS}, LABELS), expected)
    rows, classes = LOGITS[:, 0], torch.tensor([3, 6])
    torch.testing.assert_close(compute_loss("ce")({"logits": rows}, classes), F.cross_entropy(rows, classes))


def test_half_precision_is_no_excuse():
    value = compute_loss("ce")({"logits": LOGITS.bfloat16()}, LABELS)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, next_token_losses(LOGITS.bfloat16().float()) / 6)


def test_dynamic_fine_tuning_has_the_gradient_of_el():
    logits, labels = LOGITS.flatten(0, 1).double().requires_grad_(), LABELS.flatten()
    log_p = -F.cross_entropy(logits, labels, reduction="none")
    rescaled = -(log_p.exp().detach() * log_p).sum() / (labels != -100).sum()
    (expected,) = torch.autograd.grad(rescaled, logits)
    loss = make_loss("dft")
    assert repr(loss) == "el"
    torch.testing.assert_close(torch.autograd.grad(loss(logits, labels), logits)[0], expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: compute_loss(F.cross_entropy), "compute_loss: loss must be text or a lossmith loss, got function."),
        (lambda: compute_loss("ce(reduction=sum)"), "compute_loss: reduction of the loss must be 'mean', got 'sum'."),
        (
            lambda: compute_loss(make_loss("ce", ignore_index=0)),
            "compute_loss: ignore_index of the loss must be -100, as Trainer's is, got 0.",
        ),
        (
            lambda: compute_loss("ce")({"logits": LOGITS}, None),
            "compute_loss: the batches must have labels, got none; Trainer's label_names lists their columns.",
        ),
        (
            lambda: compute_loss("ce")({"logits": LOGITS}, torch.softmax(LOGITS, -1)),
            "compute_loss: labels must be class indices where shift is true, got torch.float32.",
        ),
    ],
)
def test_errors(make, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        make()
    assert str(caught.value) == message
