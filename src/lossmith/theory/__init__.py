"""What the number of classes says about a loss before training: whether it will learn, and with which parameters."""

from lossmith.theory.advice import Advice, Candidate, RecommendedLoss, advise
from lossmith.theory.escaping import EscapingEfficiency, escaping_efficiency, gradient_volume_factor
from lossmith.theory.fitting import fitted_to_classes
from lossmith.theory.fresh_network.average_error import AverageError, average_error
from lossmith.theory.fresh_network.logit_scale import logit_scale
from lossmith.theory.fresh_network.overlap import overlap
from lossmith.theory.fresh_network.parameter_transfer import NoSolutionError, TransferredParameters, transfer_parameters
from lossmith.theory.fresh_network.solution_map import SolutionMap, solution_map
from lossmith.theory.fresh_network.solve_logit_bias import SolvedBias, solve_logit_bias
from lossmith.theory.properties import Properties, properties
from lossmith.theory.top_k_temperature import gradient_share, sensible_tau

__all__ = [
    "Advice",
    "AverageError",
    "Candidate",
    "EscapingEfficiency",
    "NoSolutionError",
    "Properties",
    "RecommendedLoss",
    "SolutionMap",
    "SolvedBias",
    "TransferredParameters",
    "advise",
    "average_error",
    "escaping_efficiency",
    "fitted_to_classes",
    "gradient_share",
    "gradient_volume_factor",
    "logit_scale",
    "overlap",
    "properties",
    "sensible_tau",
    "solution_map",
    "solve_logit_bias",
    "transfer_parameters",
]


def __dir__() -> list[str]:
    return __all__
