"""How much memory a piece of work takes."""

import contextlib
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["PeakMemory"]

_STATUS = Path("/proc/self/status")
_FORGET = Path("/proc/self/clear_refs")
_FORGET_PEAK = "5"  # what the Linux kernel takes for: forget the peak of the resident memory


class PeakMemory:
    """Measures what this process holds at most while something is done, beyond what it held before.

    It is the memory of the whole process, by the system's own account. Where the system cannot forget an earlier peak, less
    than that peak cannot be seen.

    >>> with PeakMemory() as memory:
    ...     numbers = list(range(100_000))
    >>> memory.bytes >= 0
    True
    """

    def __init__(self) -> None:
        self.bytes = 0
        self._before = 0

    def __enter__(self) -> Self:
        with contextlib.suppress(OSError):
            _FORGET.write_text(_FORGET_PEAK)
        self._before = _held("VmRSS")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.bytes = max(0, _held("VmHWM") - self._before)


def _held(line: str) -> int:
    """Return what the process holds, or held at most, in bytes."""
    try:
        words = _STATUS.read_text().partition(f"{line}:")[2].split(maxsplit=1)
        return 1024 * int(words[0])
    except (OSError, IndexError, ValueError):
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
