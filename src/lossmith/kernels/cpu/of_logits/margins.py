"""Cross-entropy of scaled logits behind a margin."""

from torch import Tensor

from lossmith.kernels.cpu.evaluation import Evaluation, Kernel
from lossmith.kernels.cpu.target import kernel_of_target
from lossmith.kernels.reference import Term, cross_entropy
from lossmith.numerics.class_shares import effective_weights, log_counts, margins

__all__ = ["ldam"]

_CROSS_ENTROPY = kernel_of_target((Term(1.0, cross_entropy),))


def ldam(
    target: Tensor, *, max_margin: float, scale: float, beta: float, counts: Tensor | None, imbalance: float | None
) -> Kernel | None:
    """Return the kernel for class indices: margins and scale are constants to the gradient."""
    if target.is_floating_point():
        return None

    def kernel(logits: Tensor, target: Tensor, share: float) -> Evaluation:
        logs = log_counts(logits, counts, imbalance)
        behind = (-scale * margins(logs, max_margin)).view(-1)[target]
        steep = (logits - logits.amax(1, keepdim=True)).mul_(scale)
        found = _CROSS_ENTROPY(steep.scatter_add_(1, target.unsqueeze(1), behind.unsqueeze(1)), target, share)
        if beta == 0:
            return found._replace(factor=found.factor * scale)
        weights = effective_weights(logs, beta).view(-1)[target]
        return found._replace(losses=weights * found.losses, factor=found.factor * scale * weights.unsqueeze(1))

    return kernel
