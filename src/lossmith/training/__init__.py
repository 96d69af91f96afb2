"""Training: many runs of the same architecture as one batched model, over several processes."""

from typing import TYPE_CHECKING

from lossmith.lazy_names import lazy_names

if TYPE_CHECKING:
    from lossmith.training.job import *
    from lossmith.training.learning_rate_schedules import *
    from lossmith.training.models.backbone import *
    from lossmith.training.models.initialisation import *
    from lossmith.training.models.named_models import *
    from lossmith.training.models.sparse_layers import *
    from lossmith.training.own.trial import *
    from lossmith.training.recipe import *
    from lossmith.training.stacks.optimizers import *
    from lossmith.training.workers import *

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "job": ["Build", "Job"],
        "learning_rate_schedules": ["LEARNING_RATE_SCHEDULES", "LearningRateSchedule", "make_learning_rate_schedule"],
        "models.backbone": ["Backbone"],
        "models.initialisation": ["Initialise", "kaiming_normal", "kaiming_normal_by_outputs", "xavier_uniform"],
        "models.named_models": ["MODELS", "make_backbone"],
        "models.sparse_layers": ["SparseLinear"],
        "own.trial": ["Trial", "TrialStopped"],
        "recipe": ["CURVES", "Recipe", "Run", "Trained"],
        "stacks.optimizers": ["OPTIMIZERS"],
        "workers": ["Progress", "train_all"],
    },
)
