"""What of the package has no examples to run where something is not installed."""

from importlib.util import find_spec

from lossmith.torch_compat import has_triton

CLIENTS = ("lightning", "skorch")
TRACKERS = ("mlflow", "tensorboard", "wandb")

collect_ignore_glob = [
    *([] if has_triton() else ["lossmith/kernels/triton/*"]),
    *([] if find_spec("ray") else ["lossmith/training/engines/ray_*"]),
    *(f"lossmith/integrations/{name}.py" for name in CLIENTS if find_spec(name) is None),
    *(f"lossmith/studies/tracking/{name}_runs.py" for name in TRACKERS if find_spec(name) is None),
]
