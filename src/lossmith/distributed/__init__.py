"""Batches and classes that are spread over processes."""

from lossmith.distributed.denominators import global_denominator
from lossmith.distributed.sharding import sharded_loss

__all__ = ["global_denominator", "sharded_loss"]


def __dir__() -> list[str]:
    return __all__
