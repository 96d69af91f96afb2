"""The losses once more, from their formulas, in arithmetic of as many digits as asked for."""

from collections.abc import Callable, Sequence
from itertools import combinations

import mpmath
from mpmath import mpf

import tempered_reference


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


def poly(p: list[mpf], y: int, epsilon: float) -> mpf:
    return cross_entropy(p, y) + mpf(epsilon) * (1 - p[y])


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
    **{f"poly(epsilon={e})": lambda p, y, e=e: poly(p, y, e) for e in (1.0, 0.0, 5.0, -0.5, -0.999, -1.0)},
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


def label_smoothing(z: list[mpf], y: int) -> mpf:
    p, share = softmax(z), mpf(0.1) / (1 - mpf(0.1)) / len(z)
    return cross_entropy(p, y) + share * mpmath.fsum(cross_entropy(p, c) for c in range(len(z)))


def logit_norm(z: list[mpf], y: int) -> mpf:
    scale = mpf(0.04) * mpmath.sqrt(mpmath.fsum(each**2 for each in z))
    return cross_entropy(softmax([each / scale for each in z]), y)


def sigmoid(z: list[mpf], y: int) -> mpf:
    return mpmath.fsum(mpmath.log1p(mpmath.exp(-each if c == y else each)) for c, each in enumerate(z))


def presences(z: list[mpf], y: int, present: Callable[[mpf], mpf], absent: Callable[[mpf], mpf]) -> mpf:
    p = [1 / (1 + mpmath.exp(-each)) for each in map(mpf, z)]
    return mpmath.fsum(present(each) if c == y else absent(each) for c, each in enumerate(p))


def multi_label(f: Callable[[list[mpf], int], mpf]) -> Callable[[list[mpf], int], mpf]:
    return lambda z, y: presences(z, y, lambda p: f([p], 0), lambda p: f([1 - p], 0))


def asl(z: list[mpf], y: int, gamma_pos: float = 1.0, gamma_neg: float = 4.0, clip: float = 0.05) -> mpf:
    def absent(p: mpf) -> mpf:
        less = max(p - mpf(clip), mpf(0))
        return -(less ** mpf(gamma_neg)) * mpmath.log(1 - less) if less else mpf(0)

    return presences(z, y, lambda p: focal([p], 0, gamma_pos), absent)


def squared_error(z: list[mpf], y: int) -> mpf:
    return mpmath.fsum((each - 1) ** 2 if c == y else each**2 for c, each in enumerate(z)) / len(z)


def complement_entropy(z: list[mpf], y: int) -> mpf:
    shares = softmax([each for c, each in enumerate(z) if c != y])
    return mpmath.fsum(share * mpmath.log(share) for share in shares)


def z_loss(z: list[mpf], y: int) -> mpf:
    return cross_entropy(softmax(z), y) + mpf(1e-4) * mpmath.log(mpmath.fsum(map(mpmath.exp, z))) ** 2


def evenly_noisy(p: list[mpf], rate: float = 0.2) -> list[mpf]:
    rate = mpf(rate)
    return [(1 - rate) * own + rate / (len(p) - 1) * mpmath.fsum(p[:c] + p[c + 1 :]) for c, own in enumerate(p)]


def next_taken(p: list[mpf], rate: float = 0.2) -> list[mpf]:
    return [(1 - mpf(rate)) * own + mpf(rate) * p[c - 1] for c, own in enumerate(p)]


def unmixed(costs: list[mpf], y: int, rate: float = 0.2) -> mpf:
    """Return the entry of the solution of the system whose matrix mixes the costs evenly at a rate."""
    size = len(costs)
    mixing = mpmath.matrix(size, size)
    for row in range(size):
        for column in range(size):
            mixing[row, column] = 1 - mpf(rate) if row == column else mpf(rate) / (size - 1)
    return mpmath.lu_solve(mixing, mpmath.matrix(costs))[y]


def biased(z: list[mpf], y: int) -> list[mpf]:
    return [each + (mpf(0.5) if c == y else 0) for c, each in enumerate(z)]


def tail_log_shares(classes: int, imbalance: float) -> list[mpf]:
    counts = [mpf(imbalance) ** (mpf(c) / (classes - 1)) for c in range(classes)]
    return [mpmath.log(count / mpmath.fsum(counts)) for count in counts]


def balanced_softmax(z: list[mpf], y: int) -> mpf:
    shares = [mpmath.exp(share) for share in tail_log_shares(len(z), 0.1)]
    weighted = [share * mpmath.exp(each) for share, each in zip(shares, z, strict=True)]
    return -mpmath.log(weighted[y] / mpmath.fsum(weighted))


def ldam(z: list[mpf], y: int, beta: float = 0.0) -> mpf:
    counts = [5000 * mpf(0.1) ** (mpf(c) / (len(z) - 1)) for c in range(len(z))]
    margin = mpf(0.5) * (counts[y] / min(counts)) ** -mpf(0.25)
    weights = [(1 - mpf(beta)) / (1 - mpf(beta) ** count) for count in counts]
    mean = mpmath.fsum(count * weight for count, weight in zip(counts, weights, strict=True)) / mpmath.fsum(counts)
    moved = [30 * (each - (margin if c == y else 0)) for c, each in enumerate(z)]
    return weights[y] / mean * cross_entropy(softmax(moved), y)


def adjusted(z: list[mpf], tau: float, imbalance: float) -> list[mpf]:
    return [each + mpf(tau) * share for each, share in zip(z, tail_log_shares(len(z), imbalance), strict=True)]


def bi_tempered(z: list[mpf], y: int) -> mpf:
    one_hot = [float(c == y) for c in range(len(z))]
    return tempered_reference.divergence(one_hot, tempered_reference.tempered_softmax(z, 1.2).probs, 0.8)


def tsallis(z: list[mpf], y: int) -> mpf:
    return -tempered_reference.log_t(tempered_reference.tempered_softmax(z, 1.2).probs[y], mpf(0.8))


def smooth_topk(z: list[mpf], y: int, k: int = 2) -> mpf:
    def total(indices: list[int], size: int) -> mpf:
        sets = combinations(indices, size)
        return mpmath.fsum(mpmath.exp(mpmath.fsum(z[c] for c in chosen) / k) for chosen in sets)

    others = [c for c in range(len(z)) if c != y]
    without, with_y = total(others, k), mpmath.exp(z[y] / k) * total(others, k - 1)
    return mpmath.log(1 + mpmath.exp(1) * without / with_y)


def hard_topk(z: list[mpf], y: int, k: int = 2) -> mpf:
    rival = sorted((each for c, each in enumerate(z) if c != y), reverse=True)[k - 1]
    return max(mpf(0), 1 + (rival - z[y]) / k)


OF_LOGITS: dict[str, Callable[[list[mpf], int], mpf]] = {
    "label-smoothing": label_smoothing,
    "logit-penalty": lambda z, y: cross_entropy(softmax(z), y) + mpf(6e-4) * mpmath.fsum(each**2 for each in z),
    "logit-norm": logit_norm,
    "sigmoid": sigmoid,
    "multi-label": sigmoid,
    "multi-label(gce(q=0.5))": multi_label(lambda p, y: generalized(p, y, 0.5)),
    "multi-label(0.5*ce + 2*focal)": multi_label(lambda p, y: cross_entropy(p, y) / 2 + 2 * focal(p, y, 2.0)),
    "asl": asl,
    "asl(gamma_pos=0.0, gamma_neg=1.0, clip=0.2)": lambda z, y: asl(z, y, 0.0, 1.0, 0.2),
    "asl(gamma_pos=2.0, gamma_neg=2.0, clip=0.0)": lambda z, y: asl(z, y, 2.0, 2.0, 0.0),
    "squared-error": squared_error,
    "complement-entropy": complement_entropy,
    "cot": lambda z, y: cross_entropy(softmax(z), y) + complement_entropy(z, y),
    "logit-bias": lambda z, y: mae(softmax(biased(z, y)), y),
    "z-loss": z_loss,
    "balanced-softmax(imbalance=0.1)": balanced_softmax,
    "ldam(imbalance=0.1)": ldam,
    "ldam(beta=0.9999, imbalance=0.1)": lambda z, y: ldam(z, y, 0.9999),
    "logit-adjusted(imbalance=0.1)": lambda z, y: cross_entropy(softmax(adjusted(z, 1.0, 0.1)), y),
    "logit-adjusted(sigmoid, tau=0.5, imbalance=0.01)": lambda z, y: sigmoid(adjusted(z, 0.5, 0.01), y),
    "logit-adjusted(focal, tau=2.0, imbalance=0.01)": lambda z, y: focal(softmax(adjusted(z, 2.0, 0.01)), y, 2.0),
    "forward-correction": lambda z, y: cross_entropy(evenly_noisy(softmax(z)), y),
    "forward-correction(nce, rate=0.3)": lambda z, y: normalized(cross_entropy)(evenly_noisy(softmax(z), 0.3), y),
    "forward-correction(gce, matrix=pair(0.2))": lambda z, y: generalized(next_taken(softmax(z)), y, 0.7),
    "backward-correction": lambda z, y: unmixed([cross_entropy(softmax(z), c) for c in range(len(z))], y),
    "backward-correction(bi-tempered, rate=0.1)": lambda z, y: unmixed([bi_tempered(z, c) for c in range(len(z))], y, 0.1),
    "bi-tempered": bi_tempered,
    "tsallis": tsallis,
    "smooth-topk(k=2)": smooth_topk,
    "hard-topk(k=2)": hard_topk,
}
"""Losses that are not functions of probabilities; their tests of exactness are in files of their own."""
