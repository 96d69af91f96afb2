"""Whether operations are carried out, or recorded and imitated."""

import torch

__all__ = ["is_traced"]


def is_traced() -> bool:
    """Whether tensors may have no values: in torch.compile, or in a dispatch mode such as ``FakeTensorMode``."""
    return torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0
