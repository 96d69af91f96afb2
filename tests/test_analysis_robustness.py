"""Damaged inputs and the errors they cause."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lossmith.analysis.corruptions import CORRUPTIONS, SEVERITIES, corruptions_for
from lossmith.analysis.robustness import CorruptionErrors, corruption_errors, mean_corruption_error

IMAGES = torch.rand(6, 3, 16, 16, generator=torch.Generator().manual_seed(0))
TABLE = torch.randn(400, 5, generator=torch.Generator().manual_seed(0))


def suited():
    return [(name, inputs) for inputs in (IMAGES, TABLE) for name in (c.name for c in corruptions_for(inputs))]


@pytest.mark.parametrize(("name", "inputs"), suited())
def test_damage_grows_and_repeats(name, inputs):
    corruption = CORRUPTIONS[name]
    damage = [float((corruption(inputs, severity) - inputs).square().mean()) for severity in SEVERITIES]
    assert damage == sorted(damage)
    assert damage[0] > 0.0
    again = corruption(inputs, 3)
    assert torch.equal(again, corruption(inputs, 3))
    assert (again.dtype, again.shape) == (inputs.dtype, inputs.shape)
    if name not in {"blur", "contrast"}:
        assert not torch.equal(again, corruption(inputs, 3, seed=1))


@pytest.mark.parametrize(("name", "inputs"), suited())
def test_scaling_of_the_inputs_does_not_matter(name, inputs):
    corruption, inputs = CORRUPTIONS[name], inputs.double()
    torch.testing.assert_close(corruption(10.0 * inputs - 3.0, 4), 10.0 * corruption(inputs, 4) - 3.0)


@pytest.mark.parametrize(("name", "inputs"), suited())
def test_constant_inputs_stay_finite(name, inputs):
    assert torch.isfinite(CORRUPTIONS[name](torch.ones_like(inputs), 5)).all()


def test_noise_has_the_strength_it_says():
    ones = torch.rand(200, 1, 32, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    noise = CORRUPTIONS["gaussian-noise"](ones, 5) - ones
    assert float(noise.std()) == pytest.approx(0.38, rel=0.01)
    lost = CORRUPTIONS["missing"](TABLE, 5) != TABLE
    assert float(lost.double().mean()) == pytest.approx(0.5, abs=0.05)
    untouched = CORRUPTIONS["impulse-noise"](TABLE, 5) == TABLE
    assert float(untouched.double().mean()) == pytest.approx(0.73, abs=0.05)


def test_errors_of_a_model():
    labels = (TABLE[:, 0] > 0).long()
    errors = corruption_errors(lambda inputs: torch.stack([-inputs[:, 0], inputs[:, 0]], 1), TABLE, labels)
    assert errors.clean == 0.0
    assert errors.corruptions == ("gaussian-noise", "impulse-noise", "missing")
    assert errors.errors.shape == (3, 5)
    damaged = CORRUPTIONS["missing"](TABLE, 4)
    assert errors.errors[2, 3] == pytest.approx(float(((damaged[:, 0] > 0).long() != labels).double().mean()))
    assert errors.accuracy == pytest.approx(1.0 - errors.errors.mean())
    assert mean_corruption_error(errors, errors) == 1.0


@given(st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_mean_corruption_error_by_hand(seed):
    ours, theirs = np.random.default_rng(seed).uniform(0.1, 0.9, size=(2, 3, 5))
    names = ("a", "b", "c")
    expected = sum(sum(ours[c]) / sum(theirs[c]) for c in range(3)) / 3
    got = mean_corruption_error(CorruptionErrors(0.0, names, ours), CorruptionErrors(0.0, names, theirs))
    assert got == pytest.approx(expected)


def test_a_reference_without_errors():
    perfect, faulty = (CorruptionErrors(0.0, ("blur",), np.full((1, 5), value)) for value in (0.0, 0.1))
    assert mean_corruption_error(perfect, perfect) == 1.0
    assert mean_corruption_error(faulty, perfect) == math.inf
    assert mean_corruption_error(perfect, faulty) == 0.0


def test_bad_input():
    with pytest.raises(ValueError, match=r"^Corruption: severity must be one of 1, 2, 3, 4, 5, got 6\.$"):
        CORRUPTIONS["blur"](IMAGES, 6)
    with pytest.raises(ValueError, match=r"^Corruption: blur cannot damage torch\.float32 of shape \(400, 5\)\.$"):
        CORRUPTIONS["blur"](TABLE, 1)
    with pytest.raises(ValueError, match=r"^Corruption: missing cannot damage torch\.int64 of shape \(2, 3\)\.$"):
        CORRUPTIONS["missing"](torch.zeros(2, 3, dtype=torch.long), 1)
    with pytest.raises(
        ValueError, match=r"^corruption_errors: inputs must be images \(n, c, h, w\) or a table \(n, d\), got shape \(4,\)\.$"
    ):
        corruption_errors(lambda inputs: inputs, torch.zeros(4), [0] * 4)
    one, other = (CorruptionErrors(0.0, (name,), np.ones((1, 5))) for name in ("blur", "contrast"))
    with pytest.raises(
        ValueError, match=r"^mean_corruption_error: errors must be of the same corruptions, contrast, got blur\.$"
    ):
        mean_corruption_error(one, other)
