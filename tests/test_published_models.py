"""The networks of the papers: their size, and how they start, the final layer included."""

import math
from itertools import pairwise

import pytest
import torch
from torch import nn

from lossmith import make_objective
from lossmith.training.models.densenet import DenseNetwork
from lossmith.training.models.named_models import make_backbone
from lossmith.training.models.resnet import ResidualNetwork
from lossmith.training.models.wide_resnet import WideResidualNetwork

CIFAR = (3, 32, 32)


def size(backbone: nn.Module, classes: int) -> int:
    model = make_objective("ce").build(backbone, classes).model
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("name", "classes", "published"),
    [
        ("resnet20", 10, 0.27e6),
        ("resnet32", 10, 0.46e6),
        ("resnet44", 10, 0.66e6),
        ("resnet56", 10, 0.85e6),
        ("resnet110", 10, 1.7e6),
        ("resnet18", 100, 11.2e6),
        ("resnet34", 100, 21.3e6),
        ("all-cnn-c", 10, 1.4e6),
        ("pooled-cnn", 10, 2.0e6),
        ("wrn-16-8", 10, 11.0e6),
    ],
)
def test_networks_have_the_published_size(name: str, classes: int, published: float) -> None:
    with torch.device("meta"):
        backbone = make_backbone(name, CIFAR)
    digits = f"{size(backbone, classes):.{2 if published < 1e7 else 3}g}"
    assert float(digits) == published


def test_families_have_the_published_sizes_of_others() -> None:
    """Huang et al. 2017, table 2, and Zagoruyko and Komodakis 2016, table 4."""
    with torch.device("meta"):
        assert size(DenseNetwork(3, depth=100, growth=12), 10) == pytest.approx(0.8e6, rel=0.05)
        assert size(DenseNetwork(3, depth=250, growth=24), 10) == pytest.approx(15.3e6, rel=0.005)
        assert size(DenseNetwork(3, depth=190, growth=40), 10) == pytest.approx(25.6e6, rel=0.005)
        assert size(WideResidualNetwork(3, blocks=6, factor=2), 10) == pytest.approx(2.2e6, rel=0.02)
        assert size(WideResidualNetwork(3, blocks=3, factor=8), 10) == pytest.approx(17.2e6, rel=0.005)


@pytest.mark.parametrize(("name", "layers"), [("resnet32", 32), ("resnet34", 34), ("densenet-40-40", 40)])
def test_networks_have_as_many_layers_as_their_name_says(name: str, layers: int) -> None:
    with torch.device("meta"):
        model = make_objective("ce").build(make_backbone(name, CIFAR), 10).model
    around = [module for path, module in model.named_modules() if "around" in path]
    counted = [module for module in model.modules() if isinstance(module, nn.Conv2d | nn.Linear) and module not in around]
    assert len(counted) == layers


def fresh_logits(name: str, shape: tuple[int, ...], networks: int, rows: int = 64) -> torch.Tensor:
    """Return the logits of networks that have not learnt anything, for inputs of mean 0 and variance 1."""
    torch.manual_seed(0)
    inputs = torch.randn(rows, *shape)
    models = [make_objective("ce").build(make_backbone(name, shape), 10).model for _ in range(networks)]
    with torch.no_grad():
        return torch.stack([model(inputs) for model in models])


@pytest.mark.parametrize(("shape", "spread"), [((1, 28, 28), 0.53), (CIFAR, 0.70)])
def test_fresh_logits_of_mlp1024_spread_as_in_the_paper(shape: tuple[int, ...], spread: float) -> None:
    """A layer of Xavier weights multiplies the mean square of its inputs by 2 inputs / (inputs + outputs), ReLU halves it.

    With the final layer as torch draws it, of variance 1 / (3 inputs), the spread would be 0.22 and 0.29.
    """
    widths = [math.prod(shape), 1024, 512, 512, 10]
    square = 2.0
    for inputs, outputs in pairwise(widths):
        square *= 1 / 2 * 2 * inputs / (inputs + outputs)
    assert math.sqrt(square) == pytest.approx(spread, abs=0.005)
    logits = fresh_logits("mlp1024", shape, networks=4)
    assert logits.std().item() == pytest.approx(spread, rel=0.2)  # 40 final neurons: a standard error of 11 %
    assert abs(logits.mean().item()) < 0.4


def test_fresh_logits_of_a_residual_network_spread_as_in_the_paper() -> None:
    """A final layer of Kaiming weights doubles the mean square of the features; torch's own has a third of it."""
    logits = fresh_logits("resnet20", (3, 16, 16), networks=6, rows=32)
    torch.manual_seed(0)
    inputs = torch.randn(32, 3, 16, 16)
    features = torch.stack([make_backbone("resnet20", (3, 16, 16))(inputs) for _ in range(6)]).detach()
    expected = math.sqrt(2 * features.square().mean().item())
    assert logits.std().item() == pytest.approx(expected, rel=0.25)


@pytest.mark.parametrize("name", ["mlp1024", "resnet20", "densenet-40-12", "all-cnn-c"])
def test_every_bias_starts_at_zero(name: str) -> None:
    model = make_objective("ce").build(make_backbone(name, (3, 12, 12)), 10).model
    biases = [parameter for path, parameter in model.named_parameters() if path.endswith("bias")]
    assert biases
    assert all(bias.abs().max() == 0 for bias in biases)


def test_weights_start_as_published() -> None:
    xavier = make_objective("dropout").build(make_backbone("mlp1024", (784,)), 10).model
    for layer in (layer for layer in xavier.modules() if isinstance(layer, nn.Linear)):
        bound = (6 / (layer.in_features + layer.out_features)) ** 0.5
        assert 0.99 * bound < layer.weight.abs().max() <= bound
    kaiming = make_objective("ce").build(ResidualNetwork(3, (1, 1, 1)), 100).model
    assert kaiming.head.weight.std().item() == pytest.approx((2 / 64) ** 0.5, rel=0.05)
    by_outputs = make_objective("ce").build(WideResidualNetwork(3, blocks=1, factor=2), 100).model
    assert by_outputs.backbone.stem.weight.std().item() == pytest.approx((2 / (9 * 16)) ** 0.5, rel=0.15)
    assert by_outputs.head.weight.abs().max() <= 128**-0.5


def test_final_layers_with_a_start_of_their_own_keep_it() -> None:
    sigmoid = make_objective("sigmoid").build(make_backbone("mlp1024", (20,)), 10).model.head
    assert torch.allclose(sigmoid.bias, torch.full((10,), -math.log(10)))
    assert sigmoid.weight.abs().max() > 0.1 > 512**-0.5
    cosine = make_objective("cosine-softmax").build(make_backbone("mlp1024", (20,)), 10).model.head
    assert cosine.bias.abs().max() == 0
    assert cosine.weight.abs().max() <= 512**-0.5


def pooled_network(images: torch.Tensor) -> nn.Module:
    return make_backbone("pooled-cnn", tuple(images.shape[1:]), some_images=lambda: images)


def test_the_first_layer_of_pooled_cnn_whitens_patches_of_training_images() -> None:
    torch.manual_seed(0)
    smooth = nn.functional.avg_pool2d(torch.randn(300, 3, 14, 14), 3, stride=1) + torch.randn(300, 1, 1, 1)
    filters = pooled_network(smooth).layers[0].weight[:12]
    answers = nn.functional.conv2d(smooth, filters).transpose(0, 1).flatten(1)
    second_moments = answers @ answers.T / answers.shape[1]
    assert torch.allclose(second_moments, torch.eye(12), atol=0.05)  # noise of 5e-4 is added to variances of 0.05 and more


def test_pooled_cnn_begins_by_letting_its_inputs_pass_and_learns_all_but_its_filters() -> None:
    torch.manual_seed(0)
    images = torch.randn(16, 3, 12, 12)
    network = pooled_network(images)
    second = network.layers[2][0]
    plain = torch.randn(2, 24, 6, 6)
    assert torch.allclose(second(plain)[:, :24], plain, atol=1e-6)
    before = {name: own.clone() for name, own in network.named_parameters()}
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    network(images).square().sum().backward()
    optimizer.step()
    unchanged = [name for name, own in network.named_parameters() if torch.equal(own, before[name])]
    assert unchanged == ["layers.0.weight"]


def test_steps_of_biases_of_pooled_cnn_count_64_times() -> None:
    norm = pooled_network(torch.randn(8, 3, 12, 12)).layers[2][2]
    optimizer = torch.optim.SGD(norm.parameters(), lr=1.0)
    images = torch.randn(4, 64, 5, 5)
    before = norm(images)
    before.sum().backward()
    optimizer.step()
    assert torch.allclose(norm(images) - before, torch.full(images.shape, -64.0 * 4 * 25), rtol=1e-4)
