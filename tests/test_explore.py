"""The page of ``lossmith explore``, opened in a real browser; its mathematics against the Python library."""

import json
import math
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

from lossmith import LOSSES, make_loss
from lossmith.command_line import main
from lossmith.report.explore import write_explorer
from lossmith.report.explore.sliders import catalogue

EXPLORED = [name for name in LOSSES if name != "logit-bias"]
PARAMETERS = {
    "gce": ["q=0", "q=0.3", "q=1"],
    "truncated-gce": ["q=0.5, k=0", "q=0, k=0.2", "q=1, k=0.9"],
    "agce": ["b=0, q=0.5", "b=0.00001, q=0.5", "b=1.8, q=3", "b=0, q=0"],
    "sce": ["alpha=0, beta=2, log_zero=-7", "alpha=6, beta=0.1"],
    "focal": ["gamma=0", "gamma=0.5", "gamma=5, alpha=0.25"],
    "tamed-ce": ["alpha=0", "alpha=1", "alpha=1.7"],
    "ce-el": ["focus=0.25", "focus=0.5", "alpha=0.5, beta=2"],
    "bi-tempered": ["t1=1, t2=1", "t1=0.5, t2=4", "t1=0.9, t2=1.05", "t1=1.3, t2=2", "t1=0.2, t2=0.5", "t1=0, t2=0", "t1=0.5, t2=1"],
    "tsallis": ["t1=1, t2=1", "t1=0.5, t2=4", "t1=1.5, t2=1.3", "t1=0.3, t2=0.6"],
    "nf": ["gamma=0", "gamma=2", "gamma=0.5, printed=true", "gamma=1.5, printed=true"],
    "nce-mae": ["alpha=0, beta=1", "alpha=3, beta=0"],
    "nf-mae": ["alpha=1, beta=0.2"],
    "nce-agce": ["alpha=10, beta=0.1, b=1.8, q=3", "alpha=100, beta=0.7, b=0.05, q=0.05"],
    "smooth-topk": ["k=1, tau=1, margin=0", "k=2, tau=0.05, margin=1", "k=2, tau=0.5, margin=0.3"],
    "hard-topk": ["k=1, margin=0.5", "k=2, margin=0"],
    "label-smoothing": ["alpha=0", "alpha=0.5"],
    "logit-penalty": ["beta=0", "beta=0.3"],
    "logit-norm": ["tau=1", "tau=0.3"],
    "squared-error": ["kappa=6, target=12, scale=3"],
    "cot": ["gamma=0", "gamma=0.01"],
}
NEEDS_CLASSES = {"smooth-topk": 6, "hard-topk": 6}  # the default is k = 5


def expressions(name):
    return [name, *(f"{name}({written})" for written in PARAMETERS.get(name, []))]


def logit_rows(name):
    """Rows of several class counts, some of a fresh network and some of a sure one, with a target for each."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    counts = [count for count in (2, 3, 10, 100) if count >= NEEDS_CLASSES.get(name, 2)]
    for count in counts:
        for scale in (0.1, 1.0, 5.0, 20.0):
            row = scale * random.standard_normal(count)
            yield row, int(row.argmax())
            yield row, int(random.integers(count))


def python_value_and_gradient(expression, row, target):
    logits = torch.tensor(row, dtype=torch.float64, requires_grad=True)
    value = make_loss(expression)(logits, torch.tensor(target))
    (gradient,) = torch.autograd.grad(value, logits)
    return value.item(), gradient.numpy()


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return write_explorer(tmp_path_factory.mktemp("explore") / "explore.html")


@pytest.fixture
def open_page(page, observed, file):
    """Opens the page at an address and waits until all is drawn; at the end nothing may have gone wrong."""

    def open_at(fragment=""):
        page.goto(f"{file.as_uri()}{fragment}")
        drawn(page)
        return page

    yield open_at
    assert observed.errors == []
    assert observed.requests == []


def drawn(page):
    page.wait_for_selector("body[data-drawn=exact]")


def curve(page, chart, slot):
    return page.locator(f"#{chart}-plot .curve.slot-{slot}").get_attribute("d")


def slide(page, label, position, card=None):
    """Move a slider to a position as a user would, so that the page hears of it."""
    place = page.locator(".settings") if card is None else page.locator(".card[class*=slot-]").nth(card)
    place.get_by_label(label, exact=True).fill(str(position))
    drawn(page)


def test_every_loss_is_explored_and_no_other(open_page):
    page = open_page()
    assert page.evaluate("Object.keys(catalogue.losses)") == EXPLORED
    assert sorted(page.evaluate("Object.keys(lossFunctions)")) == sorted(EXPLORED)


def test_mathematics_of_the_page(open_page):
    """Value and gradient of every loss, to nine digits of each, or of the largest entry of the gradient."""
    page = open_page()
    cases = [
        (name, expression, row, target) for name in EXPLORED for expression in expressions(name) for row, target in logit_rows(name)
    ]
    computed = page.evaluate(
        """(cases) => cases.map(([text, row, target]) => {
            const { name, parameters } = readLoss(text);
            const { value, gradient } = valueAndGradient(name, Float64Array.from(row), target, parameters);
            return [String(value), Array.from(gradient)];
        })""",
        [(expression, row.tolist(), target) for _, expression, row, target in cases],
    )
    for (_, expression, row, target), (value, gradient) in zip(cases, computed, strict=True):
        expected_value, expected_gradient = python_value_and_gradient(expression, row, target)
        case = f"{expression} of {len(row)} classes, target {target}"
        largest = np.abs(expected_gradient).max()
        if "printed=true" in expression:  # in Python, too, a difference of numbers of order 1
            largest = max(largest, 1e-3)
        assert float(value) == pytest.approx(expected_value, rel=1e-9, abs=1e-14), case
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-9, atol=1e-12 * largest, err_msg=case)
