"""What the page has for the operations of torch."""

from lossmith.kernels.row_operations import SPECIAL

__all__ = ["FUNCTIONS", "OF_ROWS"]

# Functions of numbers in JavaScript; those that are not of Math or Number are in softmax.js.
FUNCTIONS = {
    "abs": "Math.abs",
    "clamp": "clamp",
    "clamp_max": "Math.min",
    "clamp_min": "Math.max",
    "cos": "Math.cos",
    "exp": "Math.exp",
    "expm1": "Math.expm1",
    "isfinite": "Number.isFinite",
    "isnan": "Number.isNaN",
    "log": "Math.log",
    "log1p": "Math.log1p",
    "logaddexp": "logAddExp",
    "maximum": "Math.max",
    "minimum": "Math.min",
    "relu": "relu",
    "rsqrt": "inverseSqrt",
    "sigmoid": "sigmoid",
    "sin": "Math.sin",
    "softplus": "softplus",
    "sqrt": "Math.sqrt",
    "square": "square",
    "tanh": "Math.tanh",
}
PLAIN = ("detach", "expand_as", "log_odds", "one_hot", "pow", "surprises", "tail_places", "with_slope", "zeros_like")
RENAMED = ("slice", "tempered_log_probs", "tempered_probs", "topk_index")
OF_ROWS = frozenset((*FUNCTIONS, *SPECIAL, *PLAIN, *RENAMED)) - {"getitem", "scatter_add"}
"""What ``rows.js`` has beside operators."""
