"""Final layers that are learned again on frozen features."""

import numpy as np
from threadpoolctl import threadpool_limits

from lossmith.analysis.transfer import transfer

__all__ = ["TRANSFER_ROWS", "relearned_accuracy"]

TRANSFER_ROWS = 2000
"""Rows that a layer is learned on and judged by, together."""
_MOST_ITERATIONS = 200
"""Features that vary in hardly more than one direction need thousands with weak regularisation, to no avail."""


def relearned_accuracy(features: np.ndarray, labels: np.ndarray, fit: np.ndarray, judge: np.ndarray) -> float:
    """Return the accuracy on some rows of a final layer that was learned on others.

    Features are divided by one number first, so that strengths mean the same for losses whose features differ in size.

    >>> features, labels = np.arange(8.0)[:, None], np.repeat([0, 1], 4)
    >>> relearned_accuracy(features, labels, np.array([0, 1, 2, 5, 6, 7]), np.array([3, 4]))
    1.0
    """
    size = float(features[fit].std(0).max()) or 1.0
    seen, new = features[fit] / size, features[judge] / size
    with threadpool_limits(1):  # threads would wait for one another longer than the work takes
        learned = transfer(seen, labels[fit], new, labels[judge], max_iterations=_MOST_ITERATIONS, tolerance=1e-4)
    return learned.accuracy
