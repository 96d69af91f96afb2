"""What of the package has no examples to run where something is not installed."""

from lossmith.torch_compat import has_triton

collect_ignore_glob = [] if has_triton() else ["lossmith/kernels/triton/*"]
