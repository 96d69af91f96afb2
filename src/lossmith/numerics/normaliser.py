"""The normaliser of the tempered softmax, by Newton's method from a side where it cannot fail.

With the gap ``d_i = max a - a_i >= 0``, the largest probability ``q`` and ``v = q**(1-t)``, the tempered softmax is
``p_i = exp_t(a_i - lambda) = q exp_t(-d_i / v)``, and ``q`` in [1/C, 1] is fixed by ``sum p = 1``. Consider
``g(v) = (sum_i p_i)**(1-t)``. Up to a sign in the exponent it is a norm of the vector ``v - (1-t) d``: concave and increasing
for t > 1, convex and increasing for t < 1. ``g(v) = 1`` is solved from the side where the sum is at least 1: from ``v = 1``,
or from the root of the tangent at infinity, ``v + (t-1) mean(d) = C**(t-1)``, if that is closer. Every Newton step stays on
that side of the root, so that the iteration is monotone, and it is exact in one step where all gaps are equal or t = 1. For
the distance ``h = |g - 1|`` and the slope ``g'``, convexity gives ``h_new/h + g'_new/g' <= 1``: each step divides ``h g'`` by 4
at least. :func:`step_limit` is what follows from that; two to five steps are usual.
"""

import math
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from lossmith.numerics.tracing import is_traced

__all__ = ["Normalised", "has_double", "integer_power", "normalise", "step_limit"]

# Exponents beyond this overflow in single precision. A shortened step is still one towards the root.
_LARGEST_EXPONENT = 60.0
# Multiples of the machine precision that rounding of the sums may amount to. The start keeps them from the root, because on
# its other side classes at the edge of the support are lost, and the next step leads far back.
_MARGIN = 16
# Steps where values cannot be looked at, in single and in double precision: above the most that a search over t in [0, 10],
# up to 1e6 classes and gaps of 1e-7 to 1e4 needed, which was 5 and 7 (1 < t <= 1.26), 8 and 9 (t > 1.26), 9 and 11 (t < 1).
_BLIND_STEPS_NEAR_ONE = {torch.float32: 6, torch.float64: 9}
_BLIND_STEPS_ABOVE_ONE = {torch.float32: 10, torch.float64: 12}
_BLIND_STEPS_BELOW_ONE = {torch.float32: 13, torch.float64: 16}


class Normalised(Protocol):
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


class _Step(NamedTuple):
    state: Tensor
    converged: Tensor


class _Tail(Protocol):
    """How probabilities depend on one number in each row, which Newton's method finds."""

    def start(self) -> Tensor: ...

    def newton(self, state: Tensor) -> _Step: ...

    def normalised(self, state: Tensor) -> Normalised: ...


def normalise(logits: Tensor, t: float, owner: str) -> Normalised:
    """Return the tempered softmax along dimension 1 of logits in single or double precision; it records no gradient."""
    peak = logits.amax(1, keepdim=True)
    at_hand = _values_are_at_hand(logits)
    if at_hand and not bool(torch.isfinite(peak).all()):
        _raise_not_finite(peak, owner)
    gap = peak - logits
    integer = _integer_exponent(t)
    tail: _Tail = _LogTail(gap, t) if integer is None else _IntegerTail(gap, t, integer)
    state = tail.start()
    if t == 1:
        state = tail.newton(state).state
    elif at_hand:
        state = _iterate(tail, state, step_limit(t, logits.shape[1], logits.dtype))
    else:
        for _ in range(_blind_steps(t, logits.dtype)):
            state = tail.newton(state).state
    return tail.normalised(state)


def _iterate(tail: _Tail, state: Tensor, limit: int) -> Tensor:
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
    """
    distance = abs(1 - t)
    logarithm = 3 * distance * math.log(num_classes) - math.log(distance * torch.finfo(dtype).eps)
    return math.ceil(logarithm / math.log(4)) + 4


def _blind_steps(t: float, dtype: torch.dtype) -> int:
    if t < 1:
        return _BLIND_STEPS_BELOW_ONE[dtype]
    # Asking how large a temperature is that changes between steps would compile anew at each answer.
    near_one = _is_constant(t) and t <= 1.25
    return (_BLIND_STEPS_NEAR_ONE if near_one else _BLIND_STEPS_ABOVE_ONE)[dtype]


def _is_constant(number: float) -> bool:
    """Whether a number is not an input of the graph that is being compiled."""
    if not torch.compiler.is_compiling():
        return True
    from torch.fx.experimental.symbolic_shapes import has_static_value  # heavy, and needed by nothing but compilation

    return has_static_value(number)


def _values_are_at_hand(logits: Tensor) -> bool:
    return logits.device.type == "cpu" and not is_traced() and logits.numel() > 0


def _raise_not_finite(peak: Tensor, owner: str) -> None:
    row, *_ = (~torch.isfinite(peak.movedim(1, -1).squeeze(-1))).nonzero().tolist()
    value = peak.movedim(1, -1)[tuple(row)].item()
    raise ValueError(f"{owner}: logits must be finite, or -inf for some classes, got {value} in row {tuple(row)}.")


def _integer_exponent(t: float) -> int | None:
    """Return ``1 / (t - 1)`` if powers with it are a few multiplications, unless that would tie a graph to this temperature."""
    if not _is_constant(t) or not 1 < t <= 2:
        return None
    exponent = round(1 / (t - 1))
    return exponent if exponent <= 20 and abs(exponent * (t - 1) - 1) < 1e-12 else None


def integer_power(base: Tensor, exponent: int) -> Tensor:
    """Return ``base**exponent`` for ``exponent >= 1`` by repeated squaring."""
    if exponent == 1:
        return base
    half = integer_power(base, exponent // 2)
    square = half * half
    return square.mul_(base) if exponent % 2 else square


class _LogTail:
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
        log_peak = log_peak + _MARGIN * torch.finfo(mean.dtype).eps * (1 + log_peak.abs())
        return torch.where((excess < 1) & (log_peak < 0), log_peak, 0.0)

    def newton(self, state: Tensor) -> _Step:
        """``v_new / v - 1 = (sum**(t-1) - 1) Z / B`` with ``Z = sum exp_t(-d/v)`` and ``B = sum exp_t(-d/v)**t``."""
        excess, log_terms = self.terms(self.gap, state)
        terms = log_terms.exp_()
        total = terms.sum(1, keepdim=True)
        residual = total.log() + state
        slope = _escort(terms, excess, self.t).sum(1, keepdim=True)
        step = self._log_step(residual, total / slope)
        finfo = torch.finfo(state.dtype)
        # Rounding of the state moves the residual by B/Z times as much, which is large for t < 1: there the step tells.
        converged = torch.minimum(residual.abs(), step.abs()) <= _MARGIN * finfo.eps * (1 - state)
        if self.t >= 1:
            # The error left by a step is at most t/2 of its square.
            converged |= step * step <= 2 * finfo.eps / self.t
        return _Step((state - step).clamp(max=0.0), converged)

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

    def normalised(self, state: Tensor) -> "_LogNormalised":
        return _LogNormalised(self, state)


class _LogNormalised:
    def __init__(self, tail: _LogTail, state: Tensor) -> None:
        _, log_terms = tail.terms(tail.gap, state)
        terms = log_terms.exp()
        total = _total(terms)
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


def _total(terms: Tensor) -> Tensor:
    """Return the sum of each row; that of very many numbers in single precision would be off by ten units and more."""
    if terms.shape[1] < 1 << 15 or not has_double(terms):
        return terms.sum(1, keepdim=True)
    return terms.sum(1, keepdim=True, dtype=torch.float64).to(terms.dtype)


def has_double(tensor: Tensor) -> bool:
    """Whether the tensor's device computes in double precision."""
    return tensor.device.type != "mps"


def _escort(terms: Tensor, excess: Tensor, t: float) -> Tensor:
    """Return ``exp_t(-x)**t``, which is ``exp_t(-x) / (1 + (t-1) x)``."""
    if t >= 1:
        return terms.div_(excess.add_(1))
    inside = excess > -1
    return torch.where(inside, terms / torch.where(inside, 1 + excess, 1.0), 0.0)


class _IntegerTail:
    """Temperatures ``1 + 1/b`` with a small integer b: ``p_i = (v + (t-1) d_i)**-b``. The state is v, in [1, C**(1/b)]."""

    def __init__(self, gap: Tensor, t: float, exponent: int) -> None:
        self.gap = gap.mul_(t - 1)
        self.t = t
        self.exponent = exponent

    def start(self) -> Tensor:
        mean = self.gap.mean(1, keepdim=True)
        tangent_root = torch.full_like(mean, self.gap.shape[1]).pow(self.t - 1) - mean
        return (tangent_root * (1 - _MARGIN * torch.finfo(mean.dtype).eps)).clamp(min=1.0)

    def newton(self, state: Tensor) -> _Step:
        """``v_new - v = (sum**(1/b) - 1) sum p / sum p**t``."""
        base, probs = self.powers(state)
        total = probs.sum(1, keepdim=True)
        slope = base.mul_(probs).sum(1, keepdim=True)
        log_total = total.log()
        step = torch.expm1(log_total * (self.t - 1)) * total / slope
        eps = torch.finfo(state.dtype).eps
        relative_step = self.exponent * step / state
        converged = log_total.abs() <= (_MARGIN + 2 * self.exponent) * eps
        converged |= relative_step * relative_step <= 2 * eps / self.t
        return _Step((state + step).clamp(min=1.0), converged)

    def powers(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``1 / (v + (t-1) d)`` and its power b."""
        base = (self.gap + state).reciprocal_()
        return base, integer_power(base, self.exponent)

    def normalised(self, state: Tensor) -> "_IntegerNormalised":
        return _IntegerNormalised(self, state)


class _IntegerNormalised:
    def __init__(self, tail: _IntegerTail, state: Tensor) -> None:
        self._base, probs = tail.powers(state)
        total = _total(probs)
        self.probs = probs / total
        self._log_total = total.log()
        self._tail = tail
        self._state = state
        self.gap = tail.gap

    def power(self, exponent: float) -> Tensor:
        """A power of a probability is one of the base, and often that is an integer, too."""
        base_exponent = exponent * self._tail.exponent
        if base_exponent == 0:
            return torch.ones_like(self._base)
        whole = round(base_exponent)
        if whole >= 1 and abs(base_exponent - whole) < 1e-12:
            return integer_power(self._base, whole)
        return self._base.log().mul_(base_exponent).exp_()  # half the time of pow

    def escort_weights(self) -> Tensor:
        return self.probs * self._base

    def log_probs(self, gap: Tensor) -> Tensor:
        return -self._tail.exponent * torch.log(self._state + gap) - self._log_total
