"""Slow and simple references for the top-k losses, in extended precision."""

import itertools
import math

import mpmath
import numpy as np

Extended = np.longdouble


def log_add(first, second):
    """log(exp(first) + exp(second)) of arrays that may hold -inf."""
    largest = np.maximum(first, second)
    with np.errstate(invalid="ignore"):
        result = largest + np.log1p(np.exp(-np.abs(first - second)))
    return np.where(np.isneginf(largest), -np.inf, result)


def log_polynomials(log_weights, k):
    """log sigma_0 .. log sigma_k of all prefixes, by dynamic programming; row i is about the first i elements."""
    prefixes = np.full((len(log_weights) + 1, k + 1), -np.inf, dtype=Extended)
    prefixes[0, 0] = 0
    for position, weight in enumerate(log_weights):
        prefixes[position + 1] = prefixes[position]
        prefixes[position + 1, 1:] = log_add(prefixes[position, 1:], prefixes[position, :-1] + weight)
    return prefixes


def kth_largest(scores, k):
    return np.sort(scores)[::-1][k - 1]


def loss_and_gradient(scores, target, k, tau, margin):
    """The smooth top-k loss of one row and its gradient, by dynamic programming from both ends."""
    scores = np.asarray(scores, dtype=Extended)
    scale = Extended(k) * Extended(tau)
    others = np.delete(scores, target)
    kth = kth_largest(others, k)
    weights = (others - kth) / scale
    before, after = log_polynomials(weights, k), log_polynomials(weights[::-1], k)[::-1]
    log_k, log_less = before[-1, k], before[-1, k - 1]
    excess = log_k - log_less + (kth - scores[target] + Extended(k) * Extended(margin)) / scale
    with np.errstate(over="ignore"):
        factor = 1 / (1 + np.exp(-excess)) / k
    in_k = inclusion(before, after, weights, k) - log_k
    in_less = inclusion(before, after, weights, k - 1) - log_less
    gradient = np.insert(factor * (np.exp(in_k) - np.exp(in_less)), target, -factor)
    return float(tau * (max(excess, 0) + np.log1p(np.exp(-abs(excess))))), gradient.astype(np.float64)


def inclusion(before, after, weights, size):
    """log of the sum over the subsets of a size that contain each element."""
    total = np.full(len(weights), -np.inf, dtype=Extended)
    for taken in range(size):
        total = log_add(total, before[:-1, taken] + after[1:, size - 1 - taken])
    return total + weights


def enumerated_loss(scores, target, k, tau, margin):
    """Equation 9 of the paper, one term for each set of k classes, with 60 digits."""
    with mpmath.workdps(60):
        tau, margin = mpmath.mpf(tau), mpmath.mpf(margin)
        terms = {True: mpmath.mpf(0), False: mpmath.mpf(0)}
        top = sum(mpmath.mpf(float(score)) for score in sorted(scores)[-k:]) / k
        for subset in itertools.combinations(range(len(scores)), k):
            mean = sum(mpmath.mpf(float(scores[member])) for member in subset) / k - top
            terms[target in subset] += mpmath.exp((mean + (0 if target in subset else margin)) / tau)
        return float(tau * mpmath.log1p(terms[False] / terms[True]))


def enumerated_marginals(scores, k, scale):
    """The probability of each class to be in a random set of k classes."""
    totals = [0.0] * len(scores)
    for subset in itertools.combinations(range(len(scores)), k):
        weight = math.exp(sum(scores[member] for member in subset) / scale)
        for member in subset:
            totals[member] += weight
    return [total * k / sum(totals) for total in totals]
