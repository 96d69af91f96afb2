"""Every line of docs/misprints.md: what a paper prints, and what computation gives."""

import math

import numpy as np
import pytest
import torch

from lossmith import make_loss
from lossmith.analysis import class_separation, linear_cka
from lossmith.theory import average_error, gradient_share, solve_logit_bias
from lossmith.theory.top_k_temperature import typical_scores

CLASSES, LABEL = 5, 1
LOGITS = torch.tensor([0.3, -0.8, 1.1, 0.4, -0.2], dtype=torch.float64)
PROBS = LOGITS.softmax(0)
EVERY = torch.eye(CLASSES, dtype=torch.float64)


def gradient(expression):
    logits = LOGITS.clone().requires_grad_()
    return torch.autograd.grad(make_loss(expression)(logits, torch.tensor(LABEL)), logits)[0]


def test_the_printed_bias_is_rounded_and_the_preset_is_the_printed_one():
    printed = {10: 0.5, 100: 3.0, 1000: 5.2}
    computed = {classes: solve_logit_bias(classes).epsilon for classes in printed}
    assert [round(epsilon, 3) for epsilon in computed.values()] == [0.525, 3.034, 5.358]
    assert {classes: make_loss(f"logit-bias@{classes}(mae)").epsilon for classes in printed} == printed


def test_the_average_error_of_generalised_cross_entropy():
    values = [average_error(loss, classes).value for loss, classes in (("gce(q=0.7)", 100), ("gce(q=0.48)", 1000))]
    assert values == pytest.approx([-0.0282, -0.0286], abs=4e-4)


def test_the_gradient_of_agce_has_the_probability_of_the_label():
    b, q = 0.6, 0.6
    error = PROBS[LABEL] * (PROBS - EVERY[LABEL])
    torch.testing.assert_close(gradient(f"agce(b={b}, q={q})"), error * (b + PROBS[LABEL]) ** (q - 1))
    assert not torch.allclose(gradient(f"agce(b={b}, q={q})"), error * (b + PROBS) ** (q - 1), rtol=0.01)


def test_the_gradient_of_the_printed_nf_has_its_logarithm_outside_of_the_sum():
    logarithms, slopes = torch.log((1 - PROBS) ** 0.5 * PROBS), 1 - PROBS / (2 - 2 * PROBS)
    total = logarithms.sum()
    first = (EVERY[LABEL] - PROBS) * slopes[LABEL] * total
    each = (EVERY - PROBS[:, None]) * slopes  # row n: by the logit n, column i: of the class i
    found = gradient("nf(printed=True)")
    torch.testing.assert_close(found, (first - logarithms[LABEL] * each.sum(1)) / total**2)
    assert not torch.allclose(found, (first - (each * logarithms).sum(1)) / total**2, rtol=0.1)


def test_the_gradient_of_nce_counts_classes():
    logarithms = PROBS.log()
    first = (EVERY[LABEL] - PROBS) * logarithms.sum()
    torch.testing.assert_close(gradient("nce"), (first - logarithms[LABEL] * (1 - CLASSES * PROBS)) / logarithms.sum() ** 2)
    torch.testing.assert_close(gradient("mae"), 2 * PROBS[LABEL] * (PROBS - EVERY[LABEL]))


def test_tamed_cross_entropy_vanishes_where_the_label_is_certain():
    assert make_loss("tamed-ce")(1e3 * EVERY[LABEL], torch.tensor(LABEL)).item() == pytest.approx(0, abs=1e-12)


def test_ten_classes_have_the_temperatures_of_staats():
    assert str(make_loss("bi-tempered@10")) == "bi-tempered(t1=0.8, t2=1.2)"


@pytest.mark.parametrize("spread", [0.1, 3.0])
def test_class_separation_is_alignment_by_the_trace_and_not_by_the_norm(spread):
    random, classes, each = np.random.default_rng(0), 4, 25
    labels = np.repeat(np.arange(classes), each)
    features = random.normal(size=(classes, 6))[labels] + spread * random.normal(size=(classes * each, 6))
    directions = features / np.linalg.norm(features, axis=1, keepdims=True)
    centred = directions - directions.mean(0)
    kernel, one_hot = centred @ centred.T, np.eye(classes)[labels]
    separation = class_separation(features, labels).r_squared
    assert np.sum(kernel * (one_hot @ one_hot.T)) / (each * np.trace(kernel)) == pytest.approx(separation)
    dimensions = np.trace(kernel) ** 2 / np.square(kernel).sum()
    aligned = linear_cka(directions, one_hot)
    assert aligned == pytest.approx(separation * math.sqrt(dimensions / (classes - 1)))
    assert abs(aligned - separation) > 0.01


def test_a_tau_of_one_hundredth_reaches_a_fifth_of_a_hundred_classes():
    loss = make_loss("smooth-topk(k=5, tau=0.01)")
    assert gradient_share(loss, typical_scores(100)) == pytest.approx(0.2, abs=0.1)
