"""The only home of log/exp tricks and root finding. Nothing here knows about the contract of losses, or about modules."""

from typing import TYPE_CHECKING

from lossmith.lazy_names import lazy_names

if TYPE_CHECKING:
    from lossmith.numerics.subsets.symmetric_polynomials import *
    from lossmith.numerics.tempered import *

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "subsets.symmetric_polynomials": ["elementary_symmetric"],
        "tempered": ["exp_t", "log_t", "tempered_log_softmax", "tempered_sigmoid", "tempered_softmax"],
    },
)
