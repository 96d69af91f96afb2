"""Batches that are spread over processes."""

from lossmith.distributed.denominators import global_denominator

__all__ = ["global_denominator"]


def __dir__() -> list[str]:
    return __all__
