"""Runs pytest with a CUDA device that does nothing: ``python run.py LIBRARY PYTEST-ARGUMENTS``.

torch asks once for what it knows of CUDA, and that is while it is imported. So the library must be there before.
"""

import ctypes
import importlib.util
import os
import sys
from pathlib import Path


def main() -> None:
    """Load the library beside torch's own, and run the tests."""
    torch = importlib.util.find_spec("torch")
    assert torch is not None
    libraries = Path(str(torch.origin)).parent / "lib"
    ctypes.CDLL(str(libraries / "libtorch_global_deps.so"), mode=ctypes.RTLD_GLOBAL)  # as torch itself does it
    ctypes.CDLL(str(libraries / "libtorch_cpu.so"))
    ctypes.CDLL(sys.argv[1])
    import pytest

    code = pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[2:]])
    sys.stdout.flush()
    os._exit(int(code))  # torch would wait in vain for the threads of the device


if __name__ == "__main__":
    main()
