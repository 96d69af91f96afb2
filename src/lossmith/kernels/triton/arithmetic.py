"""Elementary functions in Triton that keep their digits.

Triton's exponential in single precision rounds ``x log2(e)``, a relative error of ``|x|`` half-units, and functions such as
``log1p`` are in none of its own modules. In double precision those that Triton has are exact already.
"""

import triton
import triton.language as tl

__all__ = ["exp", "expm1", "log1p", "power", "sigmoid", "sigmoid_of_two", "softplus", "softplus_of_two", "two_difference"]


@triton.jit
def exp(x):
    """``exp(x)``: what is left beside whole powers of 2 is small, and so is its rounding."""
    if x.dtype == tl.float64:
        return tl.exp(x)
    x = tl.where(x < -110.0, -110.0, tl.where(x > 90.0, 90.0, x))
    whole = tl.floor(x * 1.4426950408889634 + 0.5)
    whole = tl.where(whole > 127.0, 127.0, whole)
    # 0.693359375 has nine digits in binary, so that its product with a whole number is exact.
    left = (x - whole * 0.693359375) + whole * 2.1219444005469057e-4
    return tl.exp2(left * 1.4426950408889634) * tl.exp2(whole)


@triton.jit
def log1p(x):
    """``log(1 + x)``: the rounding of ``1 + x`` is divided out (Kahan)."""
    sum_ = 1.0 + x
    rounded = sum_ - 1.0
    quotient = x / tl.where(rounded == 0.0, 1.0, rounded)
    value = tl.where(rounded == 0.0, x, tl.log(sum_) * quotient)
    return tl.where(x == float("inf"), x, value)


@triton.jit
def expm1(x):
    """``exp(x) - 1``: the rounding of the exponential is divided out (Kahan)."""
    power_ = exp(x)
    less = power_ - 1.0
    near = (power_ > 0.5) & (power_ < 2.0) & (power_ != 1.0)
    value = tl.where(near, less * x / tl.log(tl.where(near, power_, 2.0)), less)
    return tl.where(power_ == 1.0, x, value)


@triton.jit
def power(x, exponent):
    """``x**exponent`` for numbers >= 0."""
    positive = x > 0.0
    value = exp(exponent * tl.log(tl.where(positive, x, 1.0)))
    return tl.where(positive, value, tl.where(x == 0.0, tl.where(exponent == 0.0, 1.0, 0.0), x * float("nan")))


@triton.jit
def sigmoid(x):
    """``1 / (1 + exp(-x))``, which does not underflow before it must."""
    small = exp(-tl.abs(x))
    return tl.where(x < 0.0, small, 1.0) / (1.0 + small)


@triton.jit
def softplus(x):
    """``log(1 + exp(x))``."""
    return tl.where(x < 0.0, 0.0, x) + log1p(exp(-tl.abs(x)))


@triton.jit
def two_difference(first, second, third):
    """``first - second - third`` and what its rounding leaves; the leftover of what is infinite is 0."""
    high = first - second
    part = high - first
    low = (first - (high - part)) - (second + part)
    total = high - third
    part = total - high
    low += (high - (total - part)) - (third + part)
    return total, tl.where(tl.abs(total) < float("inf"), low, 0.0)


@triton.jit
def sigmoid_of_two(high, low):
    """The sigmoid of a sum of which the second part is small."""
    return sigmoid(high) * (1.0 + sigmoid(-high) * low)


@triton.jit
def softplus_of_two(high, low):
    """The same for ``log(1 + exp(high + low))``."""
    return softplus(high) + sigmoid(high) * low
