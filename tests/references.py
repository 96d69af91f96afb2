"""The losses once more, from their formulas, in arithmetic of as many digits as asked for."""

from collections.abc import Callable, Sequence

import mpmath
from mpmath import mpf


def softmax(logits: Sequence[float]) -> list[mpf]:
    """Return the probabilities."""
    exponentials = [mpmath.exp(mpf(logit)) for logit in logits]
    return [exponential / mpmath.fsum(exponentials) for exponential in exponentials]


def generalized(p: list[mpf], y: int, q: float) -> mpf:
    q = mpf(q)
    return -mpmath.log(p[y]) if q == 0 else (1 - p[y] ** q) / q


def asymmetric(p: list[mpf], y: int, b: float, q: float) -> mpf:
    b, q = mpf(b), mpf(q)
    return mpmath.log((b + 1) / (b + p[y])) if q == 0 else ((b + 1) ** q - (b + p[y]) ** q) / q


def tamed(p: list[mpf], y: int, alpha: float) -> mpf:
    power = 1 - mpf(alpha)
    tame = 1 - mpmath.log(p[y])
    return mpmath.log(tame) if power == 0 else (tame**power - 1) / power


def focal(p: list[mpf], y: int, gamma: float, alpha: float = 1.0) -> mpf:
    return -mpf(alpha) * (1 - p[y]) ** mpf(gamma) * mpmath.log(p[y])


def normalized(term: Callable[[list[mpf], int], mpf]) -> Callable[[list[mpf], int], mpf]:
    return lambda p, y: term(p, y) / mpmath.fsum(term(p, label) for label in range(len(p)))


def cross_entropy(p: list[mpf], y: int) -> mpf:
    return -mpmath.log(p[y])


def mae(p: list[mpf], y: int) -> mpf:
    return mpmath.fsum(abs((label == y) - prob) for label, prob in enumerate(p))


def truncated(p: list[mpf], y: int, q: float, k: float) -> mpf:
    return generalized([max(prob, mpf(k)) for prob in p], y, q)


def symmetric(p: list[mpf], y: int, alpha: float, beta: float, log_zero: float) -> mpf:
    reverse = -mpmath.fsum(prob * (0 if label == y else mpf(log_zero)) for label, prob in enumerate(p))
    return mpf(alpha) * cross_entropy(p, y) + mpf(beta) * reverse


def printed_focal(p: list[mpf], y: int, gamma: float) -> mpf:
    others = mpmath.fsum(prob for label, prob in enumerate(p) if label != y)
    return mpmath.log(others ** mpf(gamma) * p[y])


REFERENCES: dict[str, Callable[[list[mpf], int], mpf]] = {
    "ce": cross_entropy,
    "mae": mae,
    "el": lambda p, y: 1 - p[y],
    **{f"gce(q={q})": lambda p, y, q=q: generalized(p, y, q) for q in (0.7, 0.0, 1.0, 1e-3, 1e-8, 1e-15, 0.999999)},
    "truncated-gce(q=0.7, k=0.5)": lambda p, y: truncated(p, y, 0.7, 0.5),
    "truncated-gce(q=0.3, k=0.01)": lambda p, y: truncated(p, y, 0.3, 0.01),
    **{
        f"agce(b={b}, q={q})": lambda p, y, b=b, q=q: asymmetric(p, y, b, q)
        for b, q in (
            (0.6, 0.6),
            (1e-5, 0.5),
            (6.0, 1.5),
            (1.8, 3.0),
            (0.0, 0.5),
            (0.0, 0.0),
            (0.05, 0.05),
            (1.0, 0.0),
            (1e-8, 1e-6),
        )
    },
    "sce(alpha=0.1, beta=1.0, log_zero=-4.0)": lambda p, y: symmetric(p, y, 0.1, 1.0, -4.0),
    "sce(alpha=0.0, beta=2.0, log_zero=-1.0)": lambda p, y: symmetric(p, y, 0.0, 2.0, -1.0),
    **{f"focal(gamma={gamma})": lambda p, y, gamma=gamma: focal(p, y, gamma) for gamma in (2.0, 0.0, 0.1, 0.5, 0.99, 1e-6, 1.0)},
    "focal(gamma=2.0, alpha=0.25)": lambda p, y: focal(p, y, 2.0, 0.25),
    **{
        f"tamed-ce(alpha={alpha})": lambda p, y, alpha=alpha: tamed(p, y, alpha)
        for alpha in (0.5, 0.0, 1.0, 0.99999999, 1.0001, 2.0)
    },
    "mpce": lambda p, y: -(max(p) - p[y]) * mpmath.log(p[y]),
    "ce-el(focus=0.3)": lambda p, y: cross_entropy(p, y) + (1 - p[y]) / (1 - 2 * mpf(0.3)),
    "ce-el(focus=0.5)": lambda p, y: 1 - p[y],
    "ce-el(alpha=0.5, beta=3.0)": lambda p, y: mpf(0.5) * cross_entropy(p, y) + 3 * (1 - p[y]),
    "nce": normalized(cross_entropy),
    "nf(gamma=0.5)": normalized(lambda p, y: focal(p, y, 0.5)),
    "nf(gamma=2.0)": normalized(lambda p, y: focal(p, y, 2.0)),
    "nf(gamma=0.5, printed=true)": normalized(lambda p, y: printed_focal(p, y, 0.5)),
    "nce-mae": lambda p, y: normalized(cross_entropy)(p, y) + 20 * mae(p, y),
    "nf-mae": lambda p, y: normalized(lambda p, y: focal(p, y, 0.5))(p, y) + 20 * mae(p, y),
    "nce-agce": lambda p, y: normalized(cross_entropy)(p, y) + 4 * asymmetric(p, y, 6.0, 1.5),
}
