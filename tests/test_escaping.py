"""The gradient volume and the escaping efficiency, against integrals and explicit matrices."""

import itertools

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, hessian, vmap

from lossmith import CrossEntropyExpectationLoss, make_loss
from lossmith.theory import escaping_efficiency, gradient_volume_factor
from lossmith.theory.escaping import _GradientNoise


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (1.0, 1.0), (1.0, 5.0), (0.0, 1.0)])
def test_gradient_volume_is_the_integral_of_the_gradient(alpha: float, beta: float) -> None:
    # Simpson's rule is exact for the quadratic of equation 21; the product of equation 22 is linear in each variable.
    loss = CrossEntropyExpectationLoss(alpha=alpha, beta=beta, reduction="sum")
    sizes = []
    for p in (1e-9, 0.5, 1 - 1e-9):
        logits = torch.tensor([p, 1 - p], dtype=torch.float64).log().requires_grad_()
        loss(logits, torch.tensor(0)).backward()
        assert logits.grad is not None
        sizes.append(logits.grad[0].abs().item())
    volume = (sizes[0] + 4 * sizes[1] + sizes[2]) / 6
    assert gradient_volume_factor(alpha, beta) == pytest.approx(volume / 0.5, rel=1e-7)
    midpoint = 0.5 * (alpha + beta * 0.5)  # p_j (alpha + beta p) at the centre of the square
    assert gradient_volume_factor(alpha, beta, entry="other") == pytest.approx(midpoint / 0.5)


def test_gradient_volume_checks_its_arguments() -> None:
    with pytest.raises(ValueError, match=r"beta must be >= 0, got -1\.0"):
        gradient_volume_factor(1.0, -1.0)
    with pytest.raises(ValueError, match="entry must be 'target' or 'other', got 'all'"):
        gradient_volume_factor(1.0, 1.0, entry="all")


def tiny_problem() -> tuple[nn.Module, list[tuple[torch.Tensor, torch.Tensor]]]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3)).double()
    data, target = torch.randn(6, 3, dtype=torch.float64), torch.randint(3, (6,))
    return model, [(data[:4], target[:4]), (data[4:], target[4:])]


def explicit_trace(model: nn.Module, loss: nn.Module, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> float:
    names, shapes = zip(*((name, parameter.shape) for name, parameter in model.named_parameters()), strict=True)
    flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    data, target = (torch.cat(parts) for parts in zip(*batches, strict=True))

    def mean_loss(weights: torch.Tensor, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        pieces = weights.split([shape.numel() for shape in shapes])
        parameters = {name: piece.view(shape) for name, piece, shape in zip(names, pieces, shapes, strict=True)}
        return loss(functional_call(model, parameters, (inputs,)), labels)

    each = vmap(grad(mean_loss), (None, 0, 0))(flat, data.unsqueeze(1), target.unsqueeze(1))
    covariance = each.T @ each / len(each) - torch.outer(each.mean(0), each.mean(0))
    return torch.trace(hessian(mean_loss)(flat, data, target) @ covariance).item()


@pytest.mark.parametrize("expression", ["ce", "ce-el(focus=0.4)"])
def test_escaping_efficiency_has_the_trace_as_its_mean(expression: str) -> None:
    model, batches = tiny_problem()
    loss = make_loss(expression)
    exact = explicit_trace(model, loss, batches)
    noise = _GradientNoise(model, loss, batches)
    every = [noise.estimate(torch.tensor(signs, dtype=torch.float64)) for signs in itertools.product((-1.0, 1.0), repeat=6)]
    # The mean over all sign vectors is the trace itself.
    assert sum(every) / len(every) == pytest.approx(exact, rel=1e-10)


def test_escaping_efficiency_estimates_with_an_honest_error() -> None:
    model, batches = tiny_problem()
    loss = make_loss("ce")
    exact = explicit_trace(model, loss, batches)
    value, error = escaping_efficiency(model, loss, batches, probes=200, generator=torch.Generator().manual_seed(1))
    assert abs(value - exact) < 4 * error
    assert error < 0.3 * abs(exact)
    of_batches = escaping_efficiency(model, loss, batches, batch_size=4, probes=2, generator=torch.Generator().manual_seed(1))
    of_one = escaping_efficiency(model, loss, batches, probes=2, generator=torch.Generator().manual_seed(1))
    assert of_batches.value == pytest.approx(of_one.value / 4)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert loss.reduction == "mean"


def test_escaping_efficiency_of_a_linear_loss_is_zero() -> None:
    class LinearLoss(nn.Module):
        reduction = "mean"

        def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            return logits.gather(1, target.unsqueeze(1)).squeeze(1)

    _, batches = tiny_problem()
    assert escaping_efficiency(nn.Linear(3, 3).double(), LinearLoss(), batches, probes=2).value == 0.0


def test_escaping_efficiency_checks_its_arguments() -> None:
    model, batches = tiny_problem()
    with pytest.raises(ValueError, match="probes must be a whole number >= 2, got 1"):
        escaping_efficiency(model, make_loss("ce"), batches, probes=1)
    with pytest.raises(ValueError, match="batch_size must be a whole number >= 1, got 0"):
        escaping_efficiency(model, make_loss("ce"), batches, batch_size=0)
    with pytest.raises(ValueError, match="needs examples and parameters, got 0 and 4"):
        escaping_efficiency(model, make_loss("ce"), [])
    with pytest.raises(ValueError, match=r"loss must return one number for each of \d+ examples, got their mean or sum"):
        escaping_efficiency(model, nn.functional.cross_entropy, batches)
    assert not hasattr(nn.functional.cross_entropy, "reduction")
    with pytest.raises(ValueError, match="loader must give pairs of inputs and targets, got 3 things"):
        escaping_efficiency(model, "ce", [(*batch, None) for batch in batches])


def test_escaping_efficiency_of_functions_and_expressions() -> None:
    model, batches = tiny_problem()

    def each(logits: Tensor, target: Tensor) -> Tensor:
        return nn.functional.cross_entropy(logits, target, reduction="none")

    values = [
        escaping_efficiency(model, loss, batches, generator=torch.Generator().manual_seed(0)).value
        for loss in (each, "ce", nn.CrossEntropyLoss())
    ]
    assert values == pytest.approx([values[0]] * 3)
