"""Tempered logarithm, exponential, softmax and sigmoid: one family from sparsemax (t = 0) over softmax (t = 1) to heavy tails.

The derivative of the tempered softmax p comes from the escort distribution ``E = p**t / sum(p**t)``:
``dp_i = p_i**t (da_i - sum_j E_j da_j)``. Nothing here clamps or stops early; see :mod:`lossmith.numerics.normalizer`.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lossmith.numerics.elementary import box_cox
from lossmith.numerics.normalizer import Normalized, normalize
from lossmith.numerics.one_operation import as_one_operation, is_stand_in
from lossmith.numerics.precision import has_double
from lossmith.torch_compat import refuse_forward_mode_twice

__all__ = ["exp_t", "log_t", "tempered_log_softmax", "tempered_sigmoid", "tempered_softmax"]


def log_t(x: Tensor, t: float) -> Tensor:
    """Return the tempered logarithm ``(x**(1-t) - 1) / (1-t)`` for ``x >= 0``; the natural logarithm at t = 1.

    For t < 1 it is bounded from below by ``-1 / (1-t)``. t >= 0.

    Args:
        x: Numbers >= 0, in floating point.
        t: Temperature, >= 0.

    Returns:
        Numbers of the same shape.

    Raises:
        TypeError: If ``x`` is not a floating-point tensor, or ``t`` not a number.
        ValueError: If ``t`` is out of range.

    >>> log_t(torch.tensor([0.0, 1.0, 4.0]), 0.5)
    tensor([-2.,  0.,  2.])

    Reference: Amid et al. 2019, "Robust bi-tempered logistic loss based on Bregman divergences", equation 1.
    """
    _check("log_t", "x", x, t)
    return x - 1 if t == 0 else box_cox(x.log(), 1 - t)


def exp_t(x: Tensor, t: float) -> Tensor:
    """Return the tempered exponential ``max(1 + (1-t) x, 0)**(1/(1-t))``, the inverse of :func:`log_t`; exp at t = 1.

    For t < 1 it is 0 from ``-1 / (1-t)`` downwards; for t > 1 it has a heavy tail, and is infinite from ``1 / (t-1)`` upwards.

    Args:
        x: Any numbers, in floating point.
        t: Temperature, >= 0.

    Returns:
        Numbers of the same shape.

    Raises:
        TypeError: If ``x`` is not a floating-point tensor, or ``t`` not a number.
        ValueError: If ``t`` is out of range.

    >>> exp_t(torch.tensor([-3.0, 0.0, 2.0]), 0.5)
    tensor([0., 1., 4.])

    Reference: Amid et al. 2019, "Robust bi-tempered logistic loss based on Bregman divergences", equation 2.
    """
    _check("exp_t", "x", x, t)
    if t == 1:
        return x.exp()
    excess = (1 - t) * x
    inside = excess > -1
    # The unused branch must not reach -1, where its derivative is infinite.
    value = torch.exp(torch.log1p(torch.where(inside, excess, 0.0)) / (1 - t))
    return torch.where(inside, value, 0.0 if t < 1 else torch.inf)


def tempered_softmax(logits: Tensor, t: float, dim: int = -1) -> Tensor:
    """Return the probabilities ``exp_t(a_i - lambda)``, with lambda such that they add up to 1 along ``dim``.

    t > 1 has heavy tails, t = 1 is softmax, t < 1 gives exact zeros, t = 0 is sparsemax. Half precision is computed in single.

    Args:
        logits: Activations, in floating point.
        t: Temperature, >= 0.
        dim: The dimension of the classes.

    Returns:
        Probabilities of the same shape.

    Raises:
        TypeError: If the logits are not a floating-point tensor, or ``t`` is not a number.
        ValueError: If ``t`` is out of range, or there is no class.
        IndexError: If there is no dimension ``dim``.

    >>> logits = torch.tensor([2.0, 1.0, -1.0])
    >>> tempered_softmax(logits, 1.0), tempered_softmax(logits, 2.0)
    (tensor([0.7054, 0.2595, 0.0351]), tensor([0.4794, 0.3240, 0.1966]))
    >>> tempered_softmax(logits, 0.0)
    tensor([1., 0., 0.])

    Reference: Amid et al. 2019, "Robust bi-tempered logistic loss based on Bregman divergences", equation 7.
    """
    return _along("tempered_softmax", logits, t, dim, 0)


def tempered_log_softmax(logits: Tensor, t: float, dim: int = -1) -> Tensor:
    """Return the natural logarithm of :func:`tempered_softmax`, exact near probability 1, too; -inf where that is 0 (t < 1).

    Args:
        logits: Activations, in floating point.
        t: Temperature, >= 0.
        dim: The dimension of the classes.

    Returns:
        Logarithms of probabilities, of the same shape.

    Raises:
        TypeError: If the logits are not a floating-point tensor, or ``t`` is not a number.
        ValueError: If ``t`` is out of range, or there is no class.
        IndexError: If there is no dimension ``dim``.

    >>> tempered_log_softmax(torch.tensor([30.0, 0.0]), 1.0)
    tensor([-9.3576e-14, -3.0000e+01])
    """
    return _along("tempered_log_softmax", logits, t, dim, 1)


def tempered_sigmoid(logits: Tensor, t: float) -> Tensor:
    """Return the first of two probabilities whose activations differ by ``logits``, element by element; sigmoid at t = 1.

    Args:
        logits: Differences of two activations, of any shape.
        t: Temperature, >= 0.

    Returns:
        Probabilities of the same shape.

    Raises:
        TypeError: If the logits are not a floating-point tensor, or ``t`` is not a number.
        ValueError: If ``t`` is out of range.

    >>> tempered_sigmoid(torch.tensor([0.0, 4.0]), 2.0)
    tensor([0.5000, 0.8090])
    """
    _check("tempered_sigmoid", "logits", logits, t)
    pairs = torch.stack((logits, torch.zeros_like(logits)), -1)
    return _along("tempered_sigmoid", pairs, t, -1, 0).select(-1, 0)


class TemperedProbs(NamedTuple):
    """Both differentiable, for logits ``(N, C, ...)``."""

    probs: Tensor
    log_probs: Tensor


def tempered_probs(logits: Tensor, t: float) -> TemperedProbs:
    """Return tempered softmax and its logarithm along dimension 1 of logits in single or double precision.

    Args:
        logits: ``(N, C, ...)``.
        t: Temperature, >= 0; not checked.

    Returns:
        Both, of the shape of the logits.
    """
    if is_stand_in(logits):
        return as_one_operation(tempered_probs, logits, t)
    if torch.compiler.is_compiling():
        return TemperedProbs(*_TemperedProbs.apply(logits, t))  # type: ignore[no-untyped-call]
    refuse_forward_mode_twice()
    return TemperedProbs(*_TemperedProbsWithTangents.apply(logits, t))  # type: ignore[no-untyped-call]


def probs_and_logs(solution: Normalized, dtype: torch.dtype) -> TemperedProbs:
    """Return the probabilities found and their logarithms, which are exact near probability 1, too."""
    top = solution.gap.argmin(1, keepdim=True)
    rest = solution.probs.scatter(1, top, 0.0).sum(1, keepdim=True)
    log_probs = solution.log_probs(solution.gap)
    # Near probability 1 the logarithm is exact from the sum of the others.
    top_log_prob = torch.where(rest < 0.5, torch.log1p(-rest), log_probs.gather(1, top))
    return TemperedProbs(solution.probs.to(dtype), log_probs.scatter(1, top, top_log_prob).to(dtype))


def power(log_probs: Tensor, exponent: float) -> Tensor:
    """Return ``p**exponent``, and 0 with a derivative of 0 where p is 0.

    Args:
        log_probs: Logarithms of probabilities.
        exponent: Any number.

    Returns:
        The powers, of the same shape.

    >>> power(torch.tensor([0.0, -torch.inf]), -1.0)
    tensor([1., 0.])
    """
    positive = log_probs > -torch.inf
    return torch.where(positive, torch.exp(exponent * torch.where(positive, log_probs, 0.0)), 0.0)


def escort_pullback(pull: Tensor, log_probs: Tensor, t: float) -> Tensor:
    """Return the gradient with respect to the logits from ``pull = p**t`` times the gradient with respect to p.

    That is ``pull - E sum(pull)``. Where one class has most of E, its entry cancels to nothing; it is taken from the others,
    as all entries add up to 0.

    Args:
        pull: ``(N, C, ...)``.
        log_probs: The logarithms of the tempered probabilities.
        t: Temperature, >= 0.

    Returns:
        The gradient, of the same shape.
    """
    escort = _escort(log_probs, t)
    gradient = pull - escort * pull.sum(1, keepdim=True)
    top = log_probs.argmax(1, keepdim=True)
    others = gradient.scatter(1, top, 0.0).sum(1, keepdim=True)
    top_entry = torch.where(escort.gather(1, top) > 0.5, -others, gradient.gather(1, top))
    return gradient.scatter(1, top, top_entry)


def _escort(log_probs: Tensor, t: float) -> Tensor:
    """Return E, by powers relative to the largest, as there may be no place for those of any probability."""
    weights = power(log_probs - log_probs.amax(1, keepdim=True).detach(), t)
    return weights / weights.sum(1, keepdim=True)


class _TemperedProbs(torch.autograd.Function):
    """The derivative is made of differentiable operations on the output, so that it can be differentiated again."""

    @staticmethod
    def forward(logits: Tensor, t: float) -> tuple[Tensor, Tensor]:
        # Probabilities at the edge of the support are small differences, and many of them add up.
        wide = logits.double() if t < 1 and has_double(logits) else logits
        found = probs_and_logs(normalize(wide, t), logits.dtype)
        return found.probs, found.log_probs  # a plain tuple, as torch 2.6 compiles no other

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: tuple[Tensor, Tensor]) -> None:
        _, ctx.t = inputs
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(output[1])
        ctx.save_for_forward(output[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, log_grad: Tensor | None) -> tuple[Tensor | None, None]:
        (log_probs,) = ctx.saved_tensors
        pulls = [
            gradient * power(log_probs, exponent)
            for gradient, exponent in ((grad, ctx.t), (log_grad, ctx.t - 1))
            if gradient is not None
        ]
        return (escort_pullback(sum(pulls[1:], start=pulls[0]), log_probs, ctx.t) if pulls else None), None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], logits: Tensor, t: float
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        """Fold the mapped dimension into the rows, which do not see one another."""
        assert in_dims[0] is not None
        folded = logits.movedim(in_dims[0], 0).flatten(0, 1)
        probs, log_probs = tempered_probs(folded, t)
        shape = (info.batch_size, folded.shape[0] // max(1, info.batch_size), *folded.shape[1:])
        return (probs.reshape(shape), log_probs.reshape(shape)), (0, 0)


class _TemperedProbsWithTangents(_TemperedProbs):
    """The same with forward mode, which torch.compile does not support."""

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> tuple[Tensor, Tensor]:
        (log_probs,) = ctx.saved_tensors
        # Relative to the tangent of the largest class, nothing cancels where that has nearly all of the mass.
        change = tangent - tangent.gather(1, log_probs.argmax(1, keepdim=True))
        change = change - (_escort(log_probs, ctx.t) * change).sum(1, keepdim=True)
        return power(log_probs, ctx.t) * change, power(log_probs, ctx.t - 1) * change


def _along(owner: str, logits: Tensor, t: float, dim: int, which: int) -> Tensor:
    _check(owner, "logits", logits, t)
    if not -logits.dim() <= dim < max(1, logits.dim()):
        raise IndexError(f"{owner}: dim must be in [{-logits.dim()}, {logits.dim() - 1}], got {dim}.")
    if logits.dim() == 0 or logits.shape[dim] == 0:
        raise ValueError(f"{owner}: logits must have at least one class along dim {dim}, got shape {tuple(logits.shape)}.")
    rows = logits.movedim(dim, -1)
    matrix = rows.reshape(-1, rows.shape[-1]).to(torch.promote_types(logits.dtype, torch.float32))
    return tempered_probs(matrix, t)[which].reshape(rows.shape).movedim(-1, dim).to(logits.dtype)


def _check(owner: str, name: str, values: Tensor, t: float) -> None:
    if not isinstance(values, Tensor) or not values.is_floating_point():
        kind = values.dtype if isinstance(values, Tensor) else type(values).__name__
        raise TypeError(f"{owner}: {name} must be a floating-point tensor, got {kind}.")
    if isinstance(t, bool) or not isinstance(t, (int, float)):
        raise TypeError(f"{owner}: t must be a number >= 0, got {t!r}.")
    if not 0 <= t < math.inf:
        raise ValueError(f"{owner}: t must be >= 0, got {t}.")
