"""Average error, overlap, logit bias and the spread of logits."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats
from torch import nn

import lossmith
from lossmith import LogitBias, MAELoss, make_loss
from lossmith.losses.catalogue.ready import ready_losses
from lossmith.numerics.bracketed_root import bracketed_root
from lossmith.numerics.mean_activation import bias_for_mean_activation, mean_activation
from lossmith.theory import average_error, logit_scale, overlap, solve_logit_bias
from lossmith.theory.fresh_network.average_error import BLOCK_ELEMENTS

# Published parameters, as in figure 2 of paper 001.
FIGURE_2 = {
    10: ("ce", "bi-tempered", "gce", "agce", "mae"),
    1000: ("ce", "bi-tempered", "agce@100", "gce", "nce-agce@100", "nf-mae@100", "mae"),
}


def normal_mean(function, reach=12.0) -> float:
    value, _ = integrate.quad(lambda z: function(z) * stats.norm.pdf(z), -reach, reach, epsabs=1e-14, epsrel=1e-13, limit=400)
    return value


# The logit bias


@pytest.mark.parametrize(("classes", "epsilon"), [(10, 0.5246), (100, 3.0341), (1000, 5.3576)])
def test_the_bias_is_the_solution_of_equation_4(classes, epsilon):
    assert solve_logit_bias(classes).epsilon == pytest.approx(epsilon, abs=1e-4)


def test_the_bias_grows_with_the_number_of_classes_up_to_a_million():
    solved = [solve_logit_bias(classes) for classes in (2, 3, 4, 5, 7, 10, 11, 100, 101, 1000, 10**4, 10**5, 10**6 - 1, 10**6)]
    assert all(first.epsilon < second.epsilon for first, second in pairwise(solved))
    assert all(error < 1e-9 for _, error in solved)
    # With so many classes their sum is all but constant: equation 4 holds for (K - 1) exp(1/2) in its place.
    constant = bracketed_root(
        lambda epsilon: normal_mean(lambda z: special.expit(z + epsilon - math.log(10**6 - 1) - 0.5)) - 0.15, 0.0, 30.0
    )
    assert solved[-1].epsilon == pytest.approx(constant, abs=1e-5)


@pytest.mark.parametrize("sigma", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [-4.0, 0.3, 5.0])
def test_two_classes_against_an_integral(epsilon, sigma):
    expected = normal_mean(lambda z: special.expit(epsilon + math.sqrt(2) * sigma * z))
    assert mean_activation(epsilon, 2, sigma) == pytest.approx(expected, rel=1e-11)


def test_three_classes_against_a_double_integral():
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    first, second, third = np.meshgrid(nodes, nodes, nodes, indexing="ij")
    mass = weights[:, None, None] * weights[:, None] * weights / weights.sum() ** 3
    probability = 1 / (1 + np.exp(second - first - 0.7) + np.exp(third - first - 0.7))
    assert mean_activation(0.7, 3) == pytest.approx(float((mass * probability).sum()), rel=1e-10)


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 10**6), st.floats(0.01, 3.0))
def test_without_bias_all_classes_are_as_probable(classes, sigma):
    assert mean_activation(0.0, classes, sigma) * classes == pytest.approx(1.0, rel=1e-10)


@settings(deadline=None, max_examples=12)
@given(st.floats(1e-4, 1 - 1e-4), st.integers(2, 10**6), st.floats(0.05, 3.0))
def test_the_bias_gives_the_wanted_mean(mean, classes, sigma):
    epsilon, error = bias_for_mean_activation(mean, classes, sigma)
    assert mean_activation(epsilon, classes, sigma) == pytest.approx(mean, abs=1e-9)
    assert error < 1e-6


def test_the_bias_against_sampling():
    epsilon = solve_logit_bias(10_000, sigma=1.5).epsilon
    logits = 1.5 * torch.randn(2000, 10_000, generator=torch.Generator().manual_seed(3))
    logits[:, 0] += epsilon
    probabilities = torch.softmax(logits, 1)[:, 0].double()
    assert float(probabilities.mean()) == pytest.approx(0.15, abs=4 * float(probabilities.std()) / math.sqrt(2000))


def test_the_wrapper_uses_the_bias():
    loss = LogitBias(MAELoss(), num_classes=100)
    assert loss.epsilon == solve_logit_bias(100).epsilon
    assert str(make_loss(str(loss))) == str(loss)
    assert str(make_loss("logit-bias(gce, num_classes=100)")) == f"logit-bias(gce(q=0.7), epsilon={loss.epsilon})"
    assert str(LogitBias()) == "logit-bias(mae, epsilon=0.5)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_classes": 1}, "LogitBias: num_classes must be >= 2, got 1."),
        ({"num_classes": 2.5}, "LogitBias: num_classes must be an integer >= 2, got float 2.5."),
        (
            {"epsilon": 1.0, "num_classes": 10},
            "LogitBias: give either epsilon or num_classes, got epsilon=1.0 and num_classes=10.",
        ),
    ],
)
def test_what_the_wrapper_refuses(arguments, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        LogitBias(**arguments)
    assert str(caught.value) == message


# Roots


@settings(deadline=None, max_examples=50)
@given(st.floats(-5, 5), st.sampled_from([1.0, 3.0, 0.2]))
def test_roots_are_found(root, power):
    found = bracketed_root(lambda x: math.copysign(abs(x - root) ** power, x - root), -6.0, 6.0, tolerance=1e-10)
    assert found == pytest.approx(root, abs=1e-9)


def test_a_root_at_an_end_and_none():
    assert bracketed_root(lambda x: x, 0.0, 1.0) == 0.0
    assert bracketed_root(lambda x: x - 1, 0.0, 1.0) == 1.0
    with pytest.raises(ValueError, match="must change its sign"):
        bracketed_root(lambda x: x + 1, 0.0, 1.0)


# The average error


@pytest.mark.parametrize(
    ("expression", "pull"), [("ce", lambda p: 1), ("mae", lambda p: 2 * p), ("gce(q=0.7)", lambda p: p**0.7)]
)
@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_average_error_of_two_classes(expression, pull, sigma):
    z = [-3.0, 0.0, 1.5]
    value, error = average_error(expression, 2, z, sigma=sigma)
    for place, mean, deviation in zip(z, value.tolist(), error.tolist(), strict=True):
        probability = lambda other, place=place: special.expit(place - sigma * other)  # noqa: E731
        expected = normal_mean(lambda other, p=probability: -pull(p(other)) * (1 - p(other)))
        assert mean == pytest.approx(expected, abs=4 * deviation)
        assert deviation < 0.01 * abs(expected) + 1e-4


def test_average_error_of_the_paper():
    for expression, classes, expected in (("gce(q=0.7)", 100, -0.0282), ("gce(q=0.48)", 1000, -0.0286)):
        value, error = average_error(expression, classes)
        assert float(value) == pytest.approx(expected, abs=5e-5 + 3 * float(error))
    for expression, classes in (("nce-agce@100", 100), ("nce-agce@1000", 1000)):
        assert float(average_error(expression, classes).value) == pytest.approx(-0.021, abs=6e-4)


def test_the_standard_error_is_the_spread_over_seeds():
    estimates = [average_error("gce", 20, [0.0, 2.0], samples=200, seed=seed) for seed in range(40)]
    values = torch.stack([estimate.value for estimate in estimates])
    claimed = torch.stack([estimate.standard_error for estimate in estimates]).mean(0)
    torch.testing.assert_close(values.std(0), claimed, rtol=0.3, atol=0)


def test_any_function_and_any_module():
    def own(logits, target):
        return 1 - torch.softmax(logits, 1).gather(1, target[:, None]).squeeze(1)

    z = torch.linspace(-2, 4, 5)
    torch.testing.assert_close(average_error(own, 50, z).value, average_error("el", 50, z).value, rtol=1e-5, atol=1e-9)
    torch.testing.assert_close(average_error(nn.CrossEntropyLoss(), 50, z).value, average_error("ce", 50, z).value)


def test_a_bias_shifts_the_curve():
    z = torch.linspace(-2, 3, 4)
    loss = LogitBias(MAELoss(), 1.5).eval()
    torch.testing.assert_close(average_error(loss, 30, z).value, average_error("mae", 30, z + 1.5).value, rtol=1e-5, atol=1e-9)
    assert not loss.training
    assert loss.reduction == "mean"


def test_common_random_numbers_make_it_smooth_in_parameters():
    q = np.linspace(0.3, 0.7, 9)
    values = np.array([float(average_error(f"gce(q={each})", 100, samples=64).value) for each in q])
    curvature = np.diff(np.log(-values), 2)
    assert np.abs(curvature).max() < 1e-3 * np.abs(np.diff(np.log(-values))).max() * 10


def test_shapes_repeatability_and_no_global_random_numbers():
    state = torch.get_rng_state()
    value, error = average_error("mae", 10, torch.zeros(2, 3), samples=10)
    assert value.shape == error.shape == (2, 3)
    assert average_error("mae", 10).value.shape == ()
    assert torch.equal(value, average_error("mae", 10, torch.zeros(2, 3), samples=10).value)
    assert not torch.equal(value, average_error("mae", 10, torch.zeros(2, 3), samples=10, seed=1).value)
    assert torch.equal(torch.get_rng_state(), state)


def test_memory_is_bounded():
    seen = []

    def spy(logits, target):
        seen.append(logits.numel())
        return MAELoss(reduction="none")(logits, target)

    average_error(spy, 10_000, samples=100)
    assert max(seen) <= BLOCK_ELEMENTS
    assert sum(seen) == 100 * 10_000


# The overlap


@pytest.mark.parametrize("classes", FIGURE_2)
def test_overlap_orders_the_losses_as_figure_2(classes):
    overlaps = [overlap(expression, classes, samples=64) for expression in FIGURE_2[classes]]
    assert all(first > second * 1.05 for first, second in pairwise(overlaps)), overlaps
    biased = overlap(f"logit-bias(mae, epsilon={solve_logit_bias(classes).epsilon})", classes, samples=64)
    if classes == 10:
        assert min(overlaps) > 0.3
    else:
        assert biased > 0.4
        assert overlaps[2] < 0.1


def test_overlap_against_an_integral():
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)

    def curve(z: float) -> float:
        return float(weights @ (2 * special.expit(z - nodes) * special.expit(nodes - z)) / weights.sum())

    expected = weights @ [curve(z) for z in nodes] / weights.sum() / max(curve(z) for z in np.linspace(-1, 1, 21))
    assert overlap("mae", 2) == pytest.approx(expected, rel=0.01)


def test_overlap_is_a_share_that_no_factor_changes():
    for name in ready_losses():
        assert 0 <= overlap(name, 12, samples=16) <= 1
    assert overlap("ce", 1000, samples=16) > 0.99
    assert overlap("complement-entropy", 12, samples=16) == 0
    assert overlap("7*mae", 12, samples=16) == pytest.approx(overlap("mae", 12, samples=16), rel=1e-5)


# The spread of logits


def test_logit_scale_of_a_known_layer():
    torch.manual_seed(0)
    layer = nn.Linear(64, 500, bias=False)
    nn.init.normal_(layer.weight, std=0.25)
    inputs = torch.randn(200, 64)
    expected = 0.25 * inputs.square().sum(1).mean().sqrt()
    assert logit_scale(layer, [(inputs, torch.zeros(200))]) == pytest.approx(float(expected), rel=0.02)


def test_logit_scale_ignores_what_softmax_does_and_changes_nothing():
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    batches = [torch.randn(8, 4) for _ in range(3)]
    plain = logit_scale(model, batches)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    with torch.no_grad():
        model[1].bias += 5
    assert logit_scale(model, batches) == pytest.approx(plain, rel=1e-5)
    assert logit_scale(model, iter(batches), examples=8) == logit_scale(model, batches[:1])


def test_logit_scale_of_images():
    logits = torch.randn(3, 5, 4, 2, generator=torch.Generator().manual_seed(0))
    expected = logits.movedim(1, -1).reshape(-1, 5).var(1).mean().sqrt()
    assert logit_scale(nn.Identity(), [logits]) == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: average_error("mae", 1), "average_error: num_classes must be >= 2, got 1."),
        (lambda: average_error("mae", 10.5), "average_error: num_classes must be an integer >= 2, got float 10.5."),
        (lambda: average_error("mae", 10, sigma=0), "average_error: sigma must be > 0, got 0.0."),
        (lambda: average_error("mae", 10, samples=1), "average_error: samples must be >= 2, got 1."),
        (lambda: average_error("mae", 10, math.nan), "average_error: z must be finite, got nan."),
        (
            lambda: average_error("mea", 10),
            "make_loss: unknown loss 'mea' in 'mea'; did you mean 'mae'? 'lossmith list' names all.",
        ),
        (lambda: average_error(3, 10), "average_error: loss must be text, a loss or a function of logits and target, got int."),
        (
            lambda: average_error(lambda logits, target: logits.sum(), 10, samples=8),
            "average_error: loss must return one number for each of 8 examples, got ().",
        ),
        (
            lambda: average_error(lambda logits, target: logits.detach()[:, 0], 10, samples=8),
            "average_error: loss must be differentiable in the logits, got one that is not.",
        ),
        (lambda: overlap("mae", 0), "overlap: num_classes must be >= 2, got 0."),
        (lambda: solve_logit_bias(1), "solve_logit_bias: num_classes must be >= 2, got 1."),
        (lambda: solve_logit_bias(10, 1.0), "solve_logit_bias: mean_activation must be in (0, 1), got 1.0."),
        (lambda: solve_logit_bias(10, sigma=-1), "solve_logit_bias: sigma must be > 0, got -1.0."),
        (
            lambda: logit_scale(nn.Identity(), []),
            "logit_scale: loader must yield examples of at least two classes, got 0 examples.",
        ),
        (
            lambda: logit_scale(nn.Identity(), [torch.zeros(3)]),
            "logit_scale: model must return logits (N, C) or (N, C, ...), got shape (3,).",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert str(caught.value) == message


def test_the_public_names_are_at_hand():
    assert "advise" in dir(lossmith)
    assert {"solve_logit_bias", "transfer_parameters"} <= set(dir(lossmith.theory))
    assert {"average_error", "logit_scale", "overlap", "properties", "solution_map"} <= set(dir(lossmith.theory))
