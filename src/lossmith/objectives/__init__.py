"""What is trained: a final layer, a loss, schedules of its parameters and weight decay, together by name."""

from lossmith.objectives.heads import CosineLinear, DropoutLinear, final_layer_groups
from lossmith.objectives.named_objectives import OBJECTIVES, make_objective
from lossmith.objectives.named_schedules import SCHEDULES, make_schedule
from lossmith.objectives.objective import Classifier, Objective, Trainable
from lossmith.objectives.published import DATA_SETS, PRESETS, Published
from lossmith.objectives.ranges import Range
from lossmith.objectives.scheduler import LossScheduler
from lossmith.objectives.schedules import Constant, Cosine, Cyclic, Linear, Piecewise, Schedule
from lossmith.objectives.search_spaces import search_space, with_parameters

__all__ = [
    "DATA_SETS",
    "OBJECTIVES",
    "PRESETS",
    "SCHEDULES",
    "Classifier",
    "Constant",
    "Cosine",
    "CosineLinear",
    "Cyclic",
    "DropoutLinear",
    "Linear",
    "LossScheduler",
    "Objective",
    "Piecewise",
    "Published",
    "Range",
    "Schedule",
    "Trainable",
    "final_layer_groups",
    "make_objective",
    "make_schedule",
    "search_space",
    "with_parameters",
]


def __dir__() -> list[str]:
    return __all__
