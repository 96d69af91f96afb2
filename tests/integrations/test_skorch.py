"""Probabilities of losses in the real skorch."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from torch import nn

skorch = pytest.importorskip("skorch", reason="make test-integrations has skorch")

from lossmith import BiTemperedLoss, make_loss  # noqa: E402
from lossmith.integrations.skorch import LossmithNet  # noqa: E402

ROWS = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
LABELS = ROWS[:, :3].argmax(1).astype(np.int64)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, rows):
        return self.layer(rows)


def logits_of(net):
    return net.module_(torch.from_numpy(ROWS)).detach()


def options():
    torch.manual_seed(0)
    return {"verbose": 0, "max_epochs": 3, "train_split": None, "lr": 0.1}


@pytest.mark.parametrize("expression", ["gce", "bi-tempered(t1=0.5, t2=3)", "sigmoid", "nce + 20*mae"])
def test_probabilities_are_those_of_the_loss(expression):
    loss = make_loss(expression)
    plain = skorch.NeuralNetClassifier(Net, criterion=loss, predict_nonlinearity=loss.predict_proba, **options())
    for net in (LossmithNet(Net, criterion=loss, **options()), plain):
        found = net.fit(ROWS, LABELS).predict_proba(ROWS)
        np.testing.assert_allclose(found, loss.predict_proba(logits_of(net)).numpy(), rtol=1e-6)
        np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)


def test_searches_change_what_is_predicted():
    net = LossmithNet(Net, criterion=BiTemperedLoss, criterion__t2=3.0, **options())
    search = GridSearchCV(net, {"criterion__t2": [1.0, 4.0]}, cv=2, scoring="neg_log_loss").fit(ROWS, LABELS)
    best = search.best_estimator_
    assert best.criterion_.t2 == search.best_params_["criterion__t2"]
    np.testing.assert_allclose(best.predict_proba(ROWS), best.criterion_.predict_proba(logits_of(best)).numpy(), rtol=1e-6)


def test_losses_and_nets_clone():
    net = clone(LossmithNet(Net, criterion=make_loss("gce(q=0.5)"), **options()))
    assert repr(net.criterion) == "gce(q=0.5)"
    assert repr(clone(make_loss("1.0*nce + 20*mae", weight=[1.0, 2.0]))) == repr(make_loss("1.0*nce + 20*mae", weight=[1.0, 2.0]))
