"""How to make a loss learn that does not, with a number of classes."""

import math
from typing import NamedTuple

from lossmith.losses import LOSSES, ClassificationLoss, LogitBias, make_loss
from lossmith.losses.contract.adjustable import adjustable_numbers, path_of
from lossmith.theory.fresh_network.average_error import average_error
from lossmith.theory.fresh_network.kept_error import NoSolutionError
from lossmith.theory.fresh_network.overlap import overlap
from lossmith.theory.fresh_network.parameter_transfer import transfer_parameters
from lossmith.theory.fresh_network.solve_logit_bias import solve_logit_bias

__all__ = [
    "LEARNS_FROM",
    "Correction",
    "Question",
    "Start",
    "corrected",
    "corrected_parameters",
    "measured_start",
    "rounded",
    "verdict",
]

# Accuracies of Staats, Thamm and Rosenow, next to overlaps. WebVision, 1000 classes: 0.005, 0.012 and 0.023 reach 1, 7 and 13 %
# (NF-MAE, NCE-AGCE, genCE), 0.058 and more reach 59 to 65 %. CIFAR-100: 0.04 reaches 7 % (MAE), 0.059 and more 72 to 76 %; the
# one exception is NCE-MAE with 0.04 and 75 %, whose large factor acts as a learning rate twenty times as high.
LEARNS_FROM = 0.05
STALLS_BELOW = 0.02
# The least average error at 0 among the losses that learnt there, at the learning rates that all others have, is 0.0044.
WEAK_BELOW = 0.004
ENOUGH = 0.02
# So many random logits are too few for torch to spread over threads.
LOGITS, FEWEST, MOST = 32_000, 2, 1024


class Question(NamedTuple):
    """What advice is asked for."""

    num_classes: int
    reference_classes: int
    sigma: float

    def samples(self, num_classes: int, times: int = 1) -> int:
        """Return how many samples make figures good to about 1 %: the more classes, the less their sum varies between samples.

        ``times`` as many where figures must be better, and there are too few classes to make them so.
        """
        return max(FEWEST, min(MOST * times, LOGITS * times // num_classes))


class Start(NamedTuple):
    """How a loss starts to learn."""

    overlap: float
    error: float
    """``<delta_k>(0)``."""

    @property
    def learns(self) -> bool:
        """Whether it learns, if need be with a larger learning rate."""
        return self.overlap >= LEARNS_FROM


class Correction(NamedTuple):
    """A loss that learns, and why it is the one."""

    loss: ClassificationLoss
    start: Start
    reason: str


def measured_start(loss: ClassificationLoss, question: Question, num_classes: int | None = None) -> Start:
    """Measure how a loss starts."""
    classes = question.num_classes if num_classes is None else num_classes
    samples = question.samples(classes)
    error = average_error(loss, classes, 0.0, sigma=question.sigma, samples=samples).value
    return Start(overlap(loss, classes, sigma=question.sigma, samples=samples), float(error))


def verdict(start: Start) -> str:
    """Say in a word how a loss learns."""
    if start.learns:
        return "weak" if abs(start.error) < WEAK_BELOW else "learns"
    return "slow" if start.overlap >= STALLS_BELOW else "stalls"


def corrected(loss: ClassificationLoss, start: Start, question: Question) -> Correction | None:
    """Return the loss with the least change that makes it learn, or None where it needs none or where none is known."""
    word = verdict(start)
    if word == "learns":
        return None
    other = corrected_parameters(loss, start, question)
    return other or (_scaled(loss, start) if word == "weak" else _biased(loss, question))


def corrected_parameters(loss: ClassificationLoss, start: Start, question: Question) -> Correction | None:
    """Return the loss with parameters that make it learn, or None where it needs no others or where none are known."""
    word = verdict(start)
    if word == "learns":
        return None
    return _published(loss, question) or (None if word == "weak" else _transferred(loss, question))


def _scaled(loss: ClassificationLoss, start: Start) -> Correction | None:
    """A flat curve that is too low needs only a factor, which leaves the overlap as it is."""
    if start.error == 0:
        return None
    factor = rounded(ENOUGH / abs(start.error), 2)
    return Correction(factor * loss, Start(start.overlap, factor * start.error), "a factor, because its gradients are small")


def _published(loss: ClassificationLoss, question: Question) -> Correction | None:
    if not _is_default(loss) or question.num_classes not in loss.presets:
        return None
    published = type(loss).for_classes(question.num_classes)
    return _if_it_learns(published, question, f"published for {question.num_classes} classes")


def _transferred(loss: ClassificationLoss, question: Question) -> Correction | None:
    """Solve for each parameter in turn, and take the one that changes the curve least."""
    reference = loss
    if _is_default(loss) and question.reference_classes in loss.presets:
        reference = type(loss).for_classes(question.reference_classes)
    if not measured_start(reference, question, question.reference_classes).learns:
        return None
    names = [name for name, value in reference.parameters_in_order().items() if type(value) is float]
    found = [(change, each) for name in names if (solved := _solved(reference, name, question)) for change, each in [solved]]
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _solved(reference: ClassificationLoss, name: str, question: Question) -> tuple[float, Correction] | None:
    classes = (question.reference_classes, question.num_classes)
    try:
        found = transfer_parameters(
            reference, *classes, name, sigma=question.sigma, samples=lambda number: question.samples(number, times=4)
        )
    except NoSolutionError:
        return None
    numbers = adjustable_numbers(found.loss)
    number = numbers[path_of(name, numbers, owner="advise")]
    number.set(rounded(number.get(), 3))
    reason = f"{name} keeps the average error {found.target:.3g} of {reference} at {question.reference_classes} classes"
    correction = _if_it_learns(found.loss, question, reason)
    return correction and (found.shape_change, correction)


def _biased(loss: ClassificationLoss, question: Question) -> Correction | None:
    epsilon = rounded(solve_logit_bias(question.num_classes, sigma=question.sigma).epsilon, 3)
    inner = loss.loss if isinstance(loss, LogitBias) else loss
    return _if_it_learns(LogitBias(inner, epsilon), question, "the bias gives a fresh network's target a probability of 0.15")


def _if_it_learns(loss: ClassificationLoss, question: Question, reason: str) -> Correction | None:
    start = measured_start(loss, question)
    return Correction(loss, start, reason) if start.learns else None


def _is_default(loss: ClassificationLoss) -> bool:
    return loss.name in LOSSES and str(loss) == str(make_loss(loss.name))


def rounded(number: float, digits: int) -> float:
    """Return a number rounded to this many significant digits.

    >>> rounded(0.0481469, 3)
    0.0481
    """
    return round(number, digits - 1 - math.floor(math.log10(abs(number)))) if number else 0.0
