"""Linear CKA against its definitions, and layers read with hooks."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from lossmith.analysis.cka import MinibatchCKA, layer_similarity, linear_cka, unbiased_gram
from lossmith.analysis.layers import LayerReader


def related(rows=30, first=4, second=6, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, first))
    return x, x @ random.normal(size=(first, second)) + random.normal(size=(rows, second))


def biased_by_definition(x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    k, m = x @ x.T, y @ y.T
    return (k * m).sum() / np.linalg.norm(k) / np.linalg.norm(m)


def hsic_by_definition(k, m):
    """The U-statistic: the kernel of Gretton et al. averaged over all ordered 4-tuples of different examples."""
    tuples = list(itertools.permutations(range(len(k)), 4))
    return np.mean([k[i, j] * (m[i, j] + m[q, r] - 2.0 * m[i, q]) for i, j, q, r in tuples])


def hsic_by_matrices(x, y):
    """Song et al. 2012, equation 5, as printed."""
    n = len(x)
    k, m = x @ x.T, y @ y.T
    np.fill_diagonal(k, 0.0)
    np.fill_diagonal(m, 0.0)
    one = np.ones(n)
    total = (k * m).sum() + (one @ k @ one) * (one @ m @ one) / ((n - 1) * (n - 2)) - 2 / (n - 2) * (one @ k @ m @ one)
    return total / (n * (n - 3))


def unbiased_by_definition(x, y):
    return hsic_by_matrices(x, y) / np.sqrt(hsic_by_matrices(x, x) * hsic_by_matrices(y, y))


@pytest.mark.parametrize(("rows", "first", "second"), [(30, 4, 6), (5, 40, 60), (10, 3, 200), (2100, 2, 3), (1100, 1500, 2)])
def test_both_spaces_against_the_definition(rows, first, second):
    x, y = related(rows, first, second)
    assert linear_cka(x, y) == pytest.approx(biased_by_definition(x, y), rel=1e-9)
    assert linear_cka(x, y, unbiased=True) == pytest.approx(unbiased_by_definition(x, y), rel=1e-8)


def test_unbiased_gram_is_the_u_statistic():
    x, y = related(rows=7, first=2, second=3)
    a, b = (unbiased_gram(torch.from_numpy(values + 5.0)) for values in (x, y))
    assert (a * b).sum() / (7 * 4) == pytest.approx(hsic_by_definition(x @ x.T, y @ y.T), rel=1e-11)
    assert hsic_by_matrices(x, y) == pytest.approx(hsic_by_definition(x @ x.T, y @ y.T), rel=1e-11)


def test_one_batch_is_the_unbiased_estimate_and_batches_are_averaged():
    x, y = related(rows=40)
    assert MinibatchCKA().update([x], [y]).result()[0, 0] == pytest.approx(linear_cka(x, y, unbiased=True), rel=1e-11)
    cka = MinibatchCKA()
    parts = [slice(0, 10), slice(10, 20), slice(20, 30), slice(30, 40)]
    for part in parts:
        cka.update([x[part]], [y[part]])
    cross, first, second = (np.mean([hsic_by_matrices(a[part], b[part]) for part in parts]) for a, b in ((x, y), (x, x), (y, y)))
    assert cka.result()[0, 0] == pytest.approx(cross / np.sqrt(first * second), rel=1e-10)


def test_batches_estimate_the_same_as_all_examples():
    x, y = related(rows=4000)
    cka = MinibatchCKA()
    for part in np.array_split(np.arange(4000), 125):
        cka.update([x[part]], [y[part]])
    assert cka.result()[0, 0] == pytest.approx(linear_cka(x, y), abs=0.01)


def test_few_examples_of_unrelated_features_look_alike_only_with_bias():
    random = np.random.default_rng(0)
    x, y = random.normal(size=(20, 500)), random.normal(size=(20, 500))
    assert linear_cka(x, y) > 0.9
    assert abs(linear_cka(x, y, unbiased=True)) < 0.1


@given(st.integers(0, 1000), st.floats(1e-3, 1e3), st.booleans())
@settings(max_examples=30, deadline=None)
def test_rotation_scale_and_offset_do_not_matter(seed, factor, unbiased):
    x, y = related(seed=seed)
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(6, 6)))[0]
    moved = factor * y @ rotation + 7.0
    assert linear_cka(x, moved, unbiased=unbiased) == pytest.approx(linear_cka(x, y, unbiased=unbiased), abs=1e-8)
    assert linear_cka(y, moved, unbiased=unbiased) == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e10])
def test_features_that_do_not_vary(unbiased, value):
    x, _ = related()
    constant = np.full((30, 3), value)
    assert linear_cka(x, constant, unbiased=unbiased) == 0.0
    assert linear_cka(constant, constant, unbiased=unbiased) == 0.0
    shaken = constant * (1.0 + 2.0**-52 * np.random.default_rng(0).integers(0, 2, size=constant.shape))
    assert linear_cka(x, shaken, unbiased=unbiased) == 0.0
    assert (MinibatchCKA().update([x, constant], [shaken, x]).result()[:, 0] == 0.0).all()


def test_examples_that_are_all_equally_far_apart():
    """No pair is more similar than another, so the unbiased product is 0, and so is CKA."""
    x, _ = related(rows=8)
    assert linear_cka(np.eye(8), x, unbiased=True) == 0.0
    assert MinibatchCKA().update([np.eye(8)], [np.eye(8)]).result()[0, 0] == 0.0


def test_one_example():
    assert linear_cka([[1.0, 2.0]], [[3.0]]) == 0.0
    with pytest.raises(ValueError, match=r"^linear_cka: the unbiased estimate needs at least 4 examples, got 3\.$"):
        linear_cka(np.eye(3), np.eye(3), unbiased=True)


class Reusing(nn.Module):
    """Runs one activation twice, in place, and a recurrent layer; keeps a layer that it never runs."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(3, 4)
        self.drop = nn.Dropout(0.5)
        self.relu = nn.ReLU(inplace=True)
        self.recurrent = nn.GRU(2, 5, batch_first=True)
        self.leave = nn.Linear(10, 2)
        self.unused = nn.Linear(1, 1)

    def forward(self, inputs):
        hidden = self.relu(self.drop(self.enter(inputs)))
        hidden, _ = self.recurrent(hidden.view(-1, 2, 2))
        return self.leave(self.relu(hidden.flatten(1)))


def test_hooks_read_every_call_before_it_is_overwritten():
    torch.manual_seed(0)
    model = Reusing()
    model.drop.eval()
    outputs = LayerReader(model, lambda output: output.clone())(torch.randn(6, 3))
    assert list(outputs) == ["enter", "drop", "relu", "recurrent", "relu#2", "leave"]
    assert (outputs["enter"] < 0).any()
    assert torch.equal(outputs["relu"], outputs["enter"].relu())
    assert outputs["recurrent"].shape == (6, 2, 5)
    assert not outputs["leave"].requires_grad
    # The model is as it was: which parts train, and no hooks.
    assert (model.training, model.drop.training, model.relu.training) == (True, False, True)
    assert not any(module._forward_hooks for module in model.modules())


def test_hooks_are_removed_after_an_error():
    model = nn.Sequential(nn.Linear(2, 2))
    with pytest.raises(RuntimeError):
        LayerReader(model, torch.clone)(torch.randn(3, 5))
    assert not model[0]._forward_hooks
    assert model.training


def test_layers_by_name():
    model = nn.Sequential(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), nn.Linear(4, 2))
    assert list(LayerReader(model, torch.clone, ["1", "0"])(torch.randn(5, 3))) == ["0", "1"]
    with pytest.raises(ValueError, match=r"^LayerReader: layers must be names of modules in the model, got '7'\.$"):
        LayerReader(model, torch.clone, ["7"])
    with pytest.raises(ValueError, match=r"^LayerReader: layer 'unused' gave no tensor with one entry for each input\.$"):
        LayerReader(Reusing(), torch.clone, ["unused"])(torch.randn(5, 3))


def test_layer_matrix_of_two_models():
    torch.manual_seed(0)
    first = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 5))
    second = nn.Sequential(nn.Flatten(), nn.Linear(36, 7), nn.Tanh())
    inputs = torch.randn(90, 1, 6, 6)
    labelled = [(inputs[part], part) for part in torch.arange(90).split(30)]
    similarity = layer_similarity(first, second, labelled)
    assert similarity.first == ("0", "1", "2", "3")
    assert similarity.second == ("0", "1", "2")
    cka = MinibatchCKA()
    for batch, _ in labelled:
        hidden = [list(LayerReader(model, torch.clone)(batch).values()) for model in (first, second)]
        cka.update(*[[layer.double() for layer in layers] for layers in hidden])
    np.testing.assert_allclose(similarity.cka, cka.result(), atol=1e-5)
    np.testing.assert_array_equal(layer_similarity(first, second, inputs, batch_size=30).cka, similarity.cka)
    assert similarity.cka[1, 0] == similarity.cka[2, 0]  # flattening changes nothing


def test_small_batches_are_left_out():
    x, y = related(rows=13)
    parts = MinibatchCKA().update([x[:10]], [y[:10]]).update([x[10:]], [y[10:]])
    assert parts.result() == MinibatchCKA().update([x[:10]], [y[:10]]).result()
    with pytest.raises(ValueError, match=r"^MinibatchCKA: no batch had at least 4 examples\.$"):
        MinibatchCKA().update([x[:3]], [y[:3]]).result()


@pytest.mark.parametrize("rows", range(4))
def test_gram_of_few_rows(rows):
    np.testing.assert_array_equal(unbiased_gram(torch.randn(rows, 5)), np.zeros((rows, rows)))


def test_bad_input():
    with pytest.raises(ValueError, match=r"^linear_cka: second must have 2 entries, one for each row, got 3\.$"):
        linear_cka(np.eye(2), np.eye(3))
    with pytest.raises(ValueError, match=r"^MinibatchCKA: each layer must have 5 entries, one for each row, got 6\.$"):
        MinibatchCKA().update([np.eye(5)], [np.eye(6)])
    with pytest.raises(ValueError, match=r"^MinibatchCKA: both models must have layers, got none\.$"):
        MinibatchCKA().update([], [np.eye(6)])
    with pytest.raises(ValueError, match=r"^unbiased_gram: features must be finite, and their squares, too\.$"):
        MinibatchCKA().update([np.full((5, 1), np.inf)], [np.eye(5)])
