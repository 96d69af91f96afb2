"""The normaliser of the tempered softmax, by Newton's method from a side where it cannot fail.

With the gap ``d_i = max a - a_i >= 0``, the largest probability ``q`` and ``v = q**(1-t)``, the tempered softmax is
``p_i = exp_t(a_i - lambda) = q exp_t(-d_i / v)``, and ``q`` in [1/C, 1] is fixed by ``sum p = 1``. Consider
``g(v) = (sum_i p_i)**(1-t)``. Up to a sign in the exponent it is a norm of the vector ``v - (1-t) d``: concave and increasing
for t > 1, convex and increasing for t < 1. ``g(v) = 1`` is solved from the side where the sum is at least 1: from ``v = 1``,
or from the root of the tangent at infinity, ``v + (t-1) mean(d) = C**(t-1)``, if that is closer. Every Newton step stays on
that side of the root, so the iteration is monotone, and it is exact in one step where all gaps are equal or t = 1. For
the distance ``h = |g - 1|`` and the slope ``g'``, convexity gives ``h_new/h + g'_new/g' <= 1``: each step divides ``h g'`` by 4
at least. :func:`step_limit` is what follows from that; two to five steps are usual.
"""

import math
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from lossmith.numerics.precision import has_double
from lossmith.torch_compat import is_constant, is_traced, on_one_path

__all__ = ["MARGIN", "Normalized", "Step", "Tail", "normalize", "solved", "step_limit", "sum_of_terms"]

# Exponents beyond this overflow in single precision. A shortened step is still one towards the root.
_LARGEST_EXPONENT = 60.0
# Rounding of the sums may amount to this many times the machine precision. The start stays that far from the root, because
# beyond it classes at the edge of the support are lost, and the next step leads far back.
MARGIN = 16
# Steps where values cannot be looked at, in single and in double precision: above the most that a search over t in [0, 10],
# up to 1e6 classes and gaps of 1e-7 to 1e4 needed, which was 5 and 7 (1 < t <= 1.26), 8 and 9 (t > 1.26), 9 and 11 (t < 1).
_BLIND_STEPS_NEAR_ONE = {torch.float32: 6, torch.float64: 9}
_BLIND_STEPS_ABOVE_ONE = {torch.float32: 10, torch.float64: 12}
_BLIND_STEPS_BELOW_ONE = {torch.float32: 13, torch.float64: 16}


class Normalized(Protocol):
    """Probabilities ``(N, C, ...)`` that add up to 1 along dimension 1, and their powers."""

    probs: Tensor

    gap: Tensor
    """A positive multiple of ``max a - a``."""

    def power(self, exponent: float) -> Tensor:
        """Return ``probs**exponent`` for ``exponent >= 0``, and 0 where a probability is 0."""
        ...

    def escort_weights(self) -> Tensor:
        """Return ``probs**t`` in a tensor of its own."""
        ...

    def log_probs(self, gap: Tensor) -> Tensor:
        """Return the logarithms of the probabilities that belong to some of :attr:`gap`."""
        ...


class Step(NamedTuple):
    """One step of Newton's method."""

    state: Tensor
    converged: Tensor
    """Whether a row needs no further step; one that is not a number needs none."""


class Tail(Protocol):
    """How probabilities depend on one number in each row, which Newton's method finds."""

    gap: Tensor
    """A positive multiple of ``max a - a``."""

    def start(self) -> Tensor:
        """Return a state from which every step is one towards the root."""
        ...

    def newton(self, state: Tensor) -> Step:
        """Return the next state."""
        ...

    def normalized(self, state: Tensor) -> Normalized:
        """Return the probabilities that belong to the root."""
        ...


def normalize(logits: Tensor, t: float) -> Normalized:
    """Return the tempered softmax along dimension 1 of logits in single or double precision; it records no gradient.

    A row with a logit that is infinite or not a number has probabilities that are not numbers.

    Args:
        logits: ``(N, C, ...)``.
        t: Temperature, >= 0.

    Returns:
        The probabilities and their powers.

    Raises:
        ArithmeticError: If Newton's method does not converge, which is proved not to happen.
    """
    return solved(LogTail(logits.amax(1, keepdim=True) - logits, t), t)


def solved(tail: Tail, t: float) -> Normalized:
    """Return the probabilities for the root that Newton's method finds.

    Args:
        tail: What Newton's method is applied to.
        t: Temperature, >= 0.

    Returns:
        The probabilities and their powers.

    Raises:
        ArithmeticError: If it does not converge, which is proved not to happen.
    """
    state = tail.start()
    if t == 1:
        state = tail.newton(state).state
    elif tail.gap.device.type == "cpu" and tail.gap.numel() and not is_traced():
        state = _iterate(tail, state, step_limit(t, tail.gap.shape[1], tail.gap.dtype))
    else:
        for _ in range(_blind_steps(t, tail.gap.dtype)):
            state = on_one_path(tail.newton(state).state)
    return tail.normalized(state)


def _iterate(tail: Tail, state: Tensor, limit: int) -> Tensor:
    for _ in range(limit):
        state, converged = tail.newton(state)
        if bool(converged.all()):
            return state
    raise ArithmeticError(
        f"the tempered softmax did not converge in {limit} steps, which is proved to suffice: please report it."
    )


def step_limit(t: float, num_classes: int, dtype: torch.dtype) -> int:
    """Return a number of steps after which ``h`` is below rounding, whatever the logits.

    ``h g' <= C**(2|1-t|)`` at the start, ``g' >= C**-|1-t|`` throughout, and ``h`` is about ``|1-t|`` times the error of the sum.

    Args:
        t: Temperature, >= 0 and not 1.
        num_classes: How many classes there are.
        dtype: Single or double precision.

    Returns:
        The number of steps.
    """
    distance = abs(1 - t)
    logarithm = 3 * distance * math.log(num_classes) - math.log(distance * torch.finfo(dtype).eps)
    return math.ceil(logarithm / math.log(4)) + 4


def _blind_steps(t: float, dtype: torch.dtype) -> int:
    if t < 1:
        return _BLIND_STEPS_BELOW_ONE[dtype]
    # Where a temperature changes between steps, asking how large it is would compile anew at each answer.
    near_one = is_constant(t) and t <= 1.25
    return (_BLIND_STEPS_NEAR_ONE if near_one else _BLIND_STEPS_ABOVE_ONE)[dtype]


class LogTail:
    """Any temperature. The state is ``log q``; ``exp_t`` is computed by its logarithm ``-log1p((t-1) x) / (t-1)``."""

    def __init__(self, gap: Tensor, t: float) -> None:
        self.gap = gap
        self.t = t

    def start(self) -> Tensor:
        mean = self.gap.mean(1, keepdim=True)
        log_classes = torch.full_like(mean, self.gap.shape[1]).log()
        if self.t == 1:
            return -log_classes
        excess = (self.t - 1) * torch.exp((1 - self.t) * log_classes) * mean
        log_peak = torch.log1p(-excess) / (1 - self.t) - log_classes
        log_peak = log_peak + MARGIN * torch.finfo(mean.dtype).eps * (1 + log_peak.abs())
        return torch.where((excess < 1) & (log_peak < 0), log_peak, 0.0)

    def newton(self, state: Tensor) -> Step:
        """``v_new / v - 1 = (sum**(t-1) - 1) Z / B`` with ``Z = sum exp_t(-d/v)`` and ``B = sum exp_t(-d/v)**t``."""
        excess, log_terms = self.terms(self.gap, state)
        terms = log_terms.exp_()
        total = terms.sum(1, keepdim=True)
        residual = total.log() + state
        slope = _escort(terms, excess, self.t).sum(1, keepdim=True)
        step = self._log_step(residual, total / slope)
        finfo = torch.finfo(state.dtype)
        # Rounding of the state moves the residual by B/Z times as much, which is large for t < 1: there the step tells.
        converged = torch.minimum(residual.abs(), step.abs()) <= MARGIN * finfo.eps * (1 - state)
        if self.t >= 1:
            # The error left by a step is at most t/2 of its square.
            converged |= step * step <= 2 * finfo.eps / self.t
        return Step((state - step).clamp(max=0.0), converged | step.isnan())

    def _log_step(self, residual: Tensor, ratio: Tensor) -> Tensor:
        if self.t == 1:
            return residual
        exponent = ((self.t - 1) * residual).clamp(max=_LARGEST_EXPONENT)
        return torch.log1p(torch.expm1(exponent) * ratio) / (self.t - 1)

    def terms(self, gap: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``x = (t-1) d / v`` and the logarithm of ``exp_t(-d/v)``."""
        if self.t == 1:
            return torch.zeros_like(gap), -gap
        excess = gap * ((self.t - 1) * torch.exp((self.t - 1) * state))
        if self.t < 1:
            excess.clamp_(min=-1.0)
        return excess, torch.log1p(excess).mul_(1 / (1 - self.t))

    def normalized(self, state: Tensor) -> "_LogNormalized":
        return _LogNormalized(self, state)


class _LogNormalized:
    def __init__(self, tail: LogTail, state: Tensor) -> None:
        _, log_terms = tail.terms(tail.gap, state)
        terms = log_terms.exp()
        total = sum_of_terms(terms)
        self.probs = terms.div_(total)
        self._log_total = total.log()
        self._log_probs = log_terms.sub_(self._log_total)
        self._tail = tail
        self._state = state
        self.gap = tail.gap

    def power(self, exponent: float) -> Tensor:
        if exponent == 0:
            return (self._log_probs > -torch.inf).to(self.probs.dtype)
        return torch.exp_(exponent * self._log_probs)

    def escort_weights(self) -> Tensor:
        return self.power(self._tail.t)

    def log_probs(self, gap: Tensor) -> Tensor:
        return self._tail.terms(gap, self._state)[1] - self._log_total


def sum_of_terms(terms: Tensor) -> Tensor:
    """Return the sum of each row; in single precision, that of very many numbers would be off by ten units or more."""
    if terms.shape[1] < 1 << 15 or not has_double(terms):
        return terms.sum(1, keepdim=True)
    return terms.sum(1, keepdim=True, dtype=torch.float64).to(terms.dtype)


def _escort(terms: Tensor, excess: Tensor, t: float) -> Tensor:
    """Return ``exp_t(-x)**t``, which is ``exp_t(-x) / (1 + (t-1) x)``."""
    if t >= 1:
        return terms.div_(excess.add_(1))
    inside = excess > -1
    return torch.where(inside, terms / torch.where(inside, 1 + excess, 1.0), 0.0)
