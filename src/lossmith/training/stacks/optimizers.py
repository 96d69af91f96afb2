"""Optimisers of many runs at once.

The parameters of all runs are one matrix with a row for each run, and so are their gradients; learning rates are a column.
Each optimiser makes the steps of its namesake in ``torch.optim``, with the defaults that it has there.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from lossmith.torch_compat import fused_sgd

__all__ = ["OPTIMIZERS", "StackedOptimizer"]


class StackedOptimizer(ABC):
    """Base of the optimisers: ``parameters`` ``(runs, size)`` change in place; ``decay`` has a number for each, or is None."""

    decoupled = False
    """Whether weight decay shrinks the parameters themselves, or adds to their gradient."""

    def __init__(self, parameters: Tensor, decay: Tensor | None) -> None:
        self.parameters = parameters
        self.decay = decay
        self.state: dict[str, Tensor] = {}
        self.steps = 0

    def step(self, gradient: Tensor, rates: Tensor) -> None:
        """Make one step along ``gradient``, which is overwritten, with the learning rates ``(runs, 1)``.

        Args:
            gradient: The gradients ``(runs, size)``.
            rates: The learning rate of each run.
        """
        self.steps += 1
        if self.decay is not None and self.decoupled:
            self.parameters.mul_(1 - rates * self.decay)
        elif self.decay is not None:
            gradient.addcmul_(self.parameters, self.decay)
        self.update(gradient, rates)

    @abstractmethod
    def update(self, gradient: Tensor, rates: Tensor) -> None:
        """Change the parameters along the gradient, weight decay included.

        Args:
            gradient: The gradients ``(runs, size)``, which may be overwritten.
            rates: The learning rates ``(runs, 1)``.
        """

    def keep(self, rows: Tensor, parameters: Tensor) -> None:
        """Go on with some of the runs, whose parameters are now ``parameters``.

        Args:
            rows: Their places among those there are.
            parameters: Their parameters, ``(runs, size)``.
        """
        self.parameters = parameters
        self.decay = None if self.decay is None else self.decay[rows]
        self.state = {name: tensor[rows] for name, tensor in self.state.items()}

    def _zeros(self, *names: str) -> None:
        self.state = {name: torch.zeros_like(self.parameters) for name in names}


class StackedSGD(StackedOptimizer):
    """Stochastic gradient descent with momentum, Nesterov's unless told otherwise; without, where it is 0."""

    def __init__(self, parameters: Tensor, decay: Tensor | None, momentum: float = 0.9, *, nesterov: bool = True) -> None:
        super().__init__(parameters, decay)
        self.momentum = momentum
        self.nesterov = nesterov
        if momentum:
            self._zeros("velocity")

    def update(self, gradient: Tensor, rates: Tensor) -> None:
        """Step along the gradient at where momentum leads, or along the momentum itself."""
        if self.momentum and len(rates) == 1 and fused_sgd is not None and gradient.device.type == "cpu":
            self._update_in_one_pass(fused_sgd, gradient, float(rates))
            return
        if self.momentum:
            velocity = self.state["velocity"].mul_(self.momentum).add_(gradient)
            gradient = gradient.add_(velocity, alpha=self.momentum) if self.nesterov else velocity
        self.parameters.addcmul_(gradient, rates, value=-1)

    def _update_in_one_pass(self, step: Callable[..., None], gradient: Tensor, rate: float) -> None:
        """Make the same step of a single run; of a large one, three passes through memory are a tenth of the whole training."""
        how = {"momentum": self.momentum, "nesterov": self.nesterov, "lr": rate}
        plain = {"weight_decay": 0.0, "dampening": 0.0, "maximize": False, "is_first_step": False}
        step([self.parameters], [gradient], [self.state["velocity"]], **how, **plain)


class StackedAdam(StackedOptimizer):
    """Adam."""

    betas = (0.9, 0.999)
    epsilon = 1e-8

    def __init__(self, parameters: Tensor, decay: Tensor | None) -> None:
        super().__init__(parameters, decay)
        self._zeros("mean", "square")

    def update(self, gradient: Tensor, rates: Tensor) -> None:
        """Step along the mean gradient, divided by the root of its mean square."""
        first, second = self.betas
        mean = self.state["mean"].lerp_(gradient, 1 - first)
        square = self.state["square"].mul_(second).addcmul_(gradient, gradient, value=1 - second)
        scale = square.sqrt().div_(math.sqrt(1 - second**self.steps)).add_(self.epsilon)
        self.parameters.addcmul_(mean / scale, rates, value=-1 / (1 - first**self.steps))


class StackedAdamW(StackedAdam):
    """Adam with decoupled weight decay."""

    decoupled = True


class StackedAdadelta(StackedOptimizer):
    """Adadelta."""

    rho = 0.9
    epsilon = 1e-6

    def __init__(self, parameters: Tensor, decay: Tensor | None) -> None:
        super().__init__(parameters, decay)
        self._zeros("square", "moved")

    def update(self, gradient: Tensor, rates: Tensor) -> None:
        """Step along the gradient in the units of earlier steps."""
        square = self.state["square"].mul_(self.rho).addcmul_(gradient, gradient, value=1 - self.rho)
        moved = self.state["moved"]
        step = moved.add(self.epsilon).sqrt_().div_(square.add(self.epsilon).sqrt_()).mul_(gradient)
        moved.mul_(self.rho).addcmul_(step, step, value=1 - self.rho)
        self.parameters.addcmul_(step, rates, value=-1)


OPTIMIZERS: dict[str, Callable[..., StackedOptimizer]] = {
    "sgd": StackedSGD,
    "adam": StackedAdam,
    "adamw": StackedAdamW,
    "adadelta": StackedAdadelta,
}
"""By name."""
