"""A loss that is added to the catalogue is everywhere, with nothing else edited."""

import numpy as np
import pytest
import torch

import test_contract
from benchmarks.losses import measured_losses
from cases import contract_cases
from lossmith import make_loss
from lossmith.command_line import main
from lossmith.kernels import Rows
from lossmith.losses import LOSSES
from lossmith.report.explore import write_explorer
from lossmith.report.explore.sliders import catalogue
from scratch_losses import FadingLoss, MarginLoss

NEW = (FadingLoss, MarginLoss)
EXPRESSIONS = (
    "fading2",
    "fading2(rate=0)",
    "fading2(rate=3)",
    "margin-ce",
    "margin-ce(margin=0, hard=true)",
    "margin-ce(margin=2.5, hard=true)",
)


@pytest.fixture(autouse=True)
def _catalogue_with_new_losses(monkeypatch):
    for loss in NEW:
        monkeypatch.setitem(LOSSES, loss.name, loss)


def test_the_contract():
    assert {"fading2", "margin-ce"} <= set(contract_cases())
    for expression in EXPRESSIONS:
        test_contract.test_options_together_as_in_torch(expression)
        test_contract.test_one_hot_probabilities_are_indices(expression)
        test_contract.test_gradients(expression)


def test_benchmark():
    assert measured_losses()[-2:] == ["fading2", "margin-ce"]


def test_command_line(capsys):
    assert main(["list"]) == 0
    assert "Fading cross-entropy" in capsys.readouterr().out
    assert main(["show", "fading2(rate=2)"]) == 0
    assert "log(1 - rate log p) / rate" in capsys.readouterr().out


def test_page(page, observed, tmp_path):
    """Sliders, curves, value and gradient."""
    file = write_explorer(tmp_path / "page.html")
    page.goto(f"{file.as_uri()}#classes=10&loss=fading2(rate=2)&loss=margin-ce(margin=0.5,hard=true)")
    page.wait_for_selector("body[data-drawn=exact]")
    assert page.locator("#cards code").all_inner_texts() == ["fading2(rate=2)", "margin-ce(margin=0.5, hard=true)"]
    assert page.locator("#average-plot .curve").count() == 2
    assert page.get_by_label("rate", exact=True).count() == 1
    rows = np.concatenate([scale * np.random.default_rng(0).standard_normal((3, 7)) for scale in (0.1, 2.0, 15.0)])
    targets = rows.argmax(1)
    targets[::2] = 3
    for expression in EXPRESSIONS:
        values, gradients = page.evaluate(
            """([text, rows, targets]) => {
                const { name, parameters } = readLoss(text);
                const computed = rows.map((row, i) => valueAndGradient(name, Float64Array.from(row), targets[i], parameters));
                return [computed.map(({ value }) => value), computed.map(({ gradient }) => Array.from(gradient))];
            }""",
            [expression, rows.tolist(), targets.tolist()],
        )
        logits = torch.tensor(rows, requires_grad=True)
        expected = make_loss(expression, reduction="none")(logits, torch.tensor(targets))
        np.testing.assert_allclose(values, expected.detach(), rtol=1e-12, err_msg=expression)
        (gradient,) = torch.autograd.grad(expected.sum(), logits)
        np.testing.assert_allclose(gradients, gradient, rtol=1e-9, atol=1e-13, err_msg=expression)
    assert observed.errors == []


class _SortingLoss(MarginLoss):
    """Uses what no browser knows."""

    name = "sorting"

    def formula(self):
        return Rows(lambda logits, target, margin: margin * torch.cumsum(logits, 1).amax(1), {"margin": self.margin})


class _StaleLoss(FadingLoss):
    """Makes something of its parameter too early."""

    name = "stale"

    def __init__(self, rate=0.5, **options):
        super().__init__(rate, **options)
        self.double = 2 * rate

    def terms(self):
        return (super().terms()[0]._replace(factor=self.double),)


def test_what_cannot_be_printed_is_left_out_and_said(page, observed, tmp_path, monkeypatch):
    for loss in (_SortingLoss, _StaleLoss):
        monkeypatch.setitem(LOSSES, loss.name, loss)
    assert catalogue()["leftOut"] == {
        "sorting": "The formula uses cumsum, which the page does not know for rows.",
        "stale": "The formula uses double, which the constructor makes of parameters; formula() should.",
    }
    page.goto(write_explorer(tmp_path / "page.html").as_uri())
    page.wait_for_selector("body[data-drawn=exact]")
    assert page.locator(".left-out").first.inner_text() == (
        "Not on this page: sorting. The formula uses cumsum, which the page does not know for rows."
    )
    assert page.evaluate("'sorting' in lossFunctions") is False
    assert page.evaluate("'fading2' in lossFunctions") is True
    assert observed.errors == []
