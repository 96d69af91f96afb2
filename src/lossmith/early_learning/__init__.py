"""What the number of classes says about a loss before training: whether it will learn, and with which parameters."""

from lossmith.early_learning.advice import Advice, Candidate, advise
from lossmith.early_learning.average_error import AverageError, average_error
from lossmith.early_learning.logit_scale import logit_scale
from lossmith.early_learning.overlap import overlap
from lossmith.early_learning.properties import Properties, properties
from lossmith.early_learning.solution_map import SolutionMap, solution_map
from lossmith.early_learning.solve_logit_bias import SolvedBias, solve_logit_bias
from lossmith.early_learning.transfer import NoSolutionError, Transfer, transfer_parameters

__all__ = [
    "Advice",
    "AverageError",
    "Candidate",
    "NoSolutionError",
    "Properties",
    "SolutionMap",
    "SolvedBias",
    "Transfer",
    "advise",
    "average_error",
    "logit_scale",
    "overlap",
    "properties",
    "solution_map",
    "solve_logit_bias",
    "transfer_parameters",
]
