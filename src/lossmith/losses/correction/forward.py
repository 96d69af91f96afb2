"""Forward correction: the loss of the probabilities that labels have once some of them have been taken for others."""

from typing import Any, Unpack

import torch
from torch import Tensor

from lossmith.kernels import Formula, Rows, Term, Terms
from lossmith.kernels.reference import sum_of_terms, terms_of_every, terms_of_one
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.options import Options
from lossmith.losses.contract.targets import one_hot
from lossmith.losses.correction.corrected import CorrectedLoss
from lossmith.losses.correction.matrices import LabelMatrix
from lossmith.numerics.known_slope import with_slope
from lossmith.numerics.precision import in_double
from lossmith.numerics.probability import Probability
from lossmith.numerics.softmax import surprises, target_probability

__all__ = ["ForwardCorrection"]


def forward_correction(
    logits: Tensor, target: Tensor, *, terms: tuple[Term, ...], rate: float | None, matrix: LabelMatrix | None
) -> Tensor:
    """Return a sum of functions of the probability that the label has, given what is taken for what.

    Args:
        logits: ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.
        terms: The functions.
        rate: The share of wrong labels, spread evenly over the other classes, where there is no matrix.
        matrix: What is taken for what.

    Returns:
        Losses ``(N, ...)``.
    """
    classes = logits.shape[1]
    if classes == 1:  # with nothing that it could be taken for
        return sum_of_terms(terms, logits, target)
    is_soft = target.is_floating_point()
    if not is_soft and any(term.normalized for term in terms):
        target, is_soft = one_hot(logits, target), True
    if matrix is None:
        assert rate is not None
        clean = Probability.from_surprise(surprises(logits)) if is_soft else target_probability(logits, target.unsqueeze(1))
        noisy = _evenly_noisy(clean, rate, rate / (classes - 1))
    else:
        shares = matrix.of(classes, in_double(logits.new_zeros(())))
        noisy = Probability.from_log_odds(_every_odds(logits, shares) if is_soft else _label_odds(logits, target, shares))
    losses = terms_of_every(terms, noisy, target) if is_soft else terms_of_one(terms, noisy)
    return losses.squeeze(1).to(logits.dtype)


def _evenly_noisy(clean: Probability, rate: float, share: float) -> Probability:
    """Return the probability of labels that are wrong at a rate, of which every other class has a share.

    It is ``(1 - rate) p + share (1 - p)``, a sum of numbers >= 0, and so is what is left of 1, so nothing cancels.
    """
    p = (1 - rate) * clean.p + share * clean.rest
    rest = rate * clean.p + (1 - share) * clean.rest
    slope = (1 - rate - share) * clean.p / p
    return Probability(p, rest, with_slope(clean.surprise, torch.log1p(rest / p), slope))


def _label_odds(logits: Tensor, target: Tensor, shares: Tensor) -> Tensor:
    """Return the log-odds of each row's label, ``(N, 1, ...)``: of classes that are taken for it, against those that are not."""
    taken_for = shares.T[target].movedim(-1, 1)
    return _odds(in_double(logits), taken_for)


def _every_odds(logits: Tensor, shares: Tensor) -> Tensor:
    """Return the log-odds of every label, ``(N, C, ...)``."""
    taken_for = shares.reshape(1, *shares.shape, *[1] * (logits.dim() - 2))
    return _odds(in_double(logits).unsqueeze(2), taken_for).squeeze(1)


def _odds(logits: Tensor, taken_for: Tensor) -> Tensor:
    logits = logits - logits.detach().amax(1, keepdim=True)
    return (logits + taken_for.log()).logsumexp(1, keepdim=True) - (logits + torch.log1p(-taken_for)).logsumexp(1, keepdim=True)


class ForwardCorrection(CorrectedLoss):
    """A loss of the probability that the *label* has, ``f(sum_c p_c T_cy)``: for wrong labels of a known kind.

    T has the share of each true class c, a row, that carries each label y, a column. The network learns the probabilities p of
    the true classes, and predicts with them: what minimises the loss on noisy labels would minimise it on clean ones. Give
    ``rate`` for wrong labels that are spread evenly over the other classes, or ``matrix``: rows of shares, ``pair(0.2)`` for
    labels that are taken for the next class, or, in ``lossmith compare``, ``estimate``, for what the training rows show. Around
    every loss of the target's probability, and sums of them; cross-entropy by default. The wrapped loss itself when rate = 0.

    >>> import torch
    >>> loss = ForwardCorrection(rate=0.2)
    >>> loss(torch.tensor([0.0, 9.0]), torch.tensor(0)), loss(torch.tensor([0.0, 99.0]), torch.tensor(0))
    (tensor(1.6091), tensor(1.6094))
    >>> ForwardCorrection(matrix=[[0.9, 0.1], [0.4, 0.6]])
    forward-correction(ce, matrix=matrix([0.9, 0.1], [0.4, 0.6]))

    Args:
        loss: The loss to wrap, of the target's probability; cross-entropy by default.
        matrix: What is taken for what, ``(C, C)``, rows that add up to 1, in place of ``rate``.
        rate: Share of wrong labels, 0 <= rate < 1; 0.2 by default.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``;
            where a loss is given, give them to that.

    Reference: Patrini et al. 2017, "Making deep neural networks robust to label noise: a loss correction approach", theorem 2.
    """

    name = "forward-correction"

    def __init__(
        self,
        loss: ClassificationLoss | None = None,
        matrix: Any = None,
        rate: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(loss, matrix, rate, options)
        if not isinstance(self.loss.formula(), Terms):
            raise ValueError(
                f"ForwardCorrection: loss must be one of the target's probability, such as ce, gce or focal, got {self.loss}."
            )

    def formula(self) -> Formula:
        """Return the terms of the wrapped loss, of the probabilities of labels."""
        inner = self.loss.formula()
        assert isinstance(inner, Terms)
        if self.rate == 0:
            return inner
        return Rows(forward_correction, {"terms": inner.terms, "rate": self.rate, "matrix": self.matrix})
