"""What the code on the pages takes for granted: data of the right shapes, a model, a small study."""

from functools import cache

import numpy as np
import pandas as pd
import torch
from torch import nn

import lossmith
from lossmith.studies.compare import compare

QUICK = {"seeds": 2, "rates": [0.1], "epochs": 2, "references": False, "progress": False, "workers": 1}
"""What every study on the pages is cut down to; its other settings stay as they are written."""


class MyLoss(nn.Module):
    def forward(self, logits, target):
        return nn.functional.cross_entropy(logits, target)


class MyNetwork(nn.Sequential):
    def __init__(self, input_shape):
        super().__init__(nn.Flatten(), nn.Linear(int(np.prod(input_shape)), 512))


def build(input_shape, num_classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(input_shape)), num_classes))


def quick_compare(data=None, **settings):
    """Compare as the page says, though with few and short trainings."""
    shorter = {"rows": 200, **QUICK} if "train" not in settings else {"seeds": 2, "epochs": 2, "trials": 2, "progress": False}
    return compare(data, **{**settings, **shorter})


@cache
def small_study(folder):
    return compare("digits", losses=["ce", "gce"], noise=[0, 0.4], rows=300, output=folder, keep=["features", "weights"], **QUICK)


def write_reviews(folder):
    """Write the table that pages read: reviews with a rating."""
    rng = np.random.default_rng(0)
    words = {"good": ["fine", "kind", "quick", "warm"], "bad": ["dull", "rude", "slow", "cold"]}
    rows = [
        {"text": " ".join(rng.choice(words[rating], 3)), "price": rng.normal(), "rating": rating}
        for rating in ["good", "bad"] * 60
    ]
    pd.DataFrame(rows).to_csv(folder / "reviews.csv", index=False)


@cache
def names(folder):
    """Return what pages may use without having made it; each takes a copy, so that it knows nothing of what others called so."""
    torch.manual_seed(0)
    logits, target = torch.randn(200, 10, requires_grad=True), torch.randint(10, (200,))
    study = small_study(folder / "studies" / "digits")
    outputs = {
        name: torch.randn(200, 10)
        for name in ("run_1_logits", "run_2_logits", "run_3_logits", "logits_1", "logits_2", "logits_3", "logits_4")
    }
    model, other = (nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10)) for _ in range(2))
    inputs, test_inputs, test_labels = torch.rand(40, 1, 8, 8), torch.rand(100, 1, 8, 8), torch.arange(100) % 10
    return {
        **outputs,
        "lossmith": lossmith,
        "torch": torch,
        "np": np,
        "MyLoss": MyLoss,
        "MyNetwork": MyNetwork,
        "build": build,
        "logits": logits,
        "target": target,
        "labels": target.numpy(),
        "probabilities": torch.softmax(logits, 1).detach().numpy(),
        "validation_logits": torch.randn(50, 10),
        "validation_labels": torch.randint(10, (50,)),
        "features": torch.randn(200, 16),
        "other_features": torch.randn(200, 12),
        "test_features": torch.randn(100, 16),
        "test_labels": test_labels,
        "test_inputs": test_inputs,
        "model": model,
        "other_model": other,
        "loader": [(inputs, target[:40])],
        "errors_of_cross_entropy": lossmith.analysis.corruption_errors(other, test_inputs, test_labels),
        "class_weights": torch.ones(10),
        "backbone": lossmith.training.Backbone(nn.Sequential(nn.Flatten(), nn.Linear(64, 16)), out_features=16),
        "epochs": 2,
        "train_one_epoch": lambda model, loss: None,
        "study": study,
        "results": study.results,
        "several": study.results.assign(data="digits"),
        "body": "",
    }
