"""From the text of a program to its functions: compiled once, kept by content.

A file's name holds the digest of what it was made from and its own, so that one that was cut off or changed is never loaded.
Files take their place in one step, and two processes that make the same one do not disturb each other.
"""

import ctypes
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from lossmith.cache_folder import cache_folder

__all__ = ["CompilerError", "compiler", "library"]

COMPILERS = ("cc", "gcc", "clang")
# Without what errno and traps of floating-point numbers would tell, which nobody asks for, loops become loops over vectors.
FLAGS = ("-O3", "-march=native", "-std=gnu11", "-fPIC", "-shared", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math")


class CompilerError(OSError):
    """There is no compiler, or it failed."""


@cache
def compiler() -> tuple[str, ...]:
    """Return the command of a C compiler: that of the environment variable ``CC``, or the first that is found.

    Returns:
        The program and its own arguments.

    Raises:
        CompilerError: If there is none.
    """
    wanted = [shlex.split(os.environ["CC"])] if os.environ.get("CC") else [[name] for name in COMPILERS]
    for name, *arguments in wanted:
        path = shutil.which(name)
        if path is not None:
            return (path, *arguments)
    names = ", ".join(command[0] for command in wanted)
    raise CompilerError(f"LOSSMITH_KERNELS=native needs a C compiler, and there is none: looked for {names}. CC may name one.")


def library(text: str) -> ctypes.CDLL:
    """Return the functions of a program, from the cache if it is there.

    Args:
        text: The program in C.

    Returns:
        The loaded library.

    Raises:
        CompilerError: If it cannot be compiled, or not be kept.
    """
    digest = hashlib.sha256("\n".join([*compiler(), *FLAGS, _machine(), text]).encode()).hexdigest()[:32]
    folder = cache_folder() / "native"
    path = _kept(folder, digest)
    try:
        return ctypes.CDLL(str(path or _compiled(text, folder, digest)))
    except CompilerError:
        raise
    except OSError as error:
        raise CompilerError(f"cannot make a kernel in {folder}: {error}") from error


@cache
def _machine() -> str:
    """Return what -march=native depends on, as several machines may share a cache."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "-".join(os.uname()) if hasattr(os, "uname") else ""
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:32]


def _kept(folder: Path, digest: str) -> Path | None:
    """Return a file that was made from the same text and is as it was then."""
    for file in folder.glob(f"{digest}-*.so"):
        if file.stem == f"{digest}-{_digest(file)}":
            return file
    return None


def _compiled(text: str, folder: Path, digest: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        made = Path(place) / "kernel.so"
        command = [*compiler(), *FLAGS, "-x", "c", "-", "-o", str(made), "-lm"]
        result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)  # noqa: S603 (the compiler)
        if result.returncode != 0:
            lines = [line for line in result.stderr.splitlines() if "error" in line]
            raise CompilerError(f"{compiler()[0]} cannot compile a kernel: {lines[0] if lines else 'no message'}")
        file = folder / f"{digest}-{_digest(made)}.so"
        made.replace(file)
    return file
