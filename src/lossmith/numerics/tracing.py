"""Whether operations are carried out, or recorded and imitated."""

import torch

__all__ = ["is_traced"]


_PRE_DISPATCH = torch._C.DispatchKey.PreDispatch


def is_traced() -> bool:
    """Whether tensors may have no values: in torch.compile, or in a mode such as ``FakeTensorMode`` or that of ``make_fx``."""
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0:
        return True
    return torch._C._dispatch_tls_is_dispatch_key_included(_PRE_DISPATCH)
