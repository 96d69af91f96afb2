"""On which device a study computes: the one place where that is decided.

Everything else takes the device that it is given. Draws are made by a processor's generators on every device, so that a GPU
starts from the same weights, sees the same batches and drops the same units as a processor does.
"""

import re

import torch

from lossmith.expressions.quotes import quote

__all__ = ["CPU", "allows_fork", "check_device", "chosen_device", "device_of_worker", "devices_for", "is_accelerator", "precise"]

CPU = torch.device("cpu")
_NAMES = r"auto|cpu|mps|cuda(:\d+)?"


def check_device(name: str) -> None:
    """Raise an error for a name that no device has, on whatever machine.

    Args:
        name: What was given.

    Raises:
        ValueError: If it is none of those that are known.
    """
    if not isinstance(name, str) or not re.fullmatch(_NAMES, name):
        raise ValueError(f"compare: device must be auto, cpu, cuda, cuda:N or mps, got {quote(name)}.")


def chosen_device(name: str) -> torch.device:
    """Return the device that a name stands for on this machine.

    Args:
        name: ``auto``, ``cpu``, ``cuda``, ``cuda:1`` or ``mps``; ``auto`` is the best there is.

    Returns:
        A device that is there. ``cuda`` without a number stands for all of them.

    Raises:
        ValueError: If the name is none of these, or there is no such device.

    >>> chosen_device("cpu")
    device(type='cpu')
    """
    check_device(name)
    if name == "auto":
        return torch.device("cuda" if _count_of("cuda") else "mps" if _count_of("mps") else "cpu")
    device = torch.device(name)
    count = _count_of(device.type)
    if device.type != "cpu" and (device.index or 0) >= count:
        there = f"{count} {device.type} device{'s' if count != 1 else ''}" if count else f"no {device.type} device"
        raise ValueError(f"compare: device must be one that is there, got {name!r}; this machine has {there}.")
    return device


def devices_for(device: torch.device) -> list[torch.device]:
    """Return the devices that share the trials: all GPUs where none was named by its number, else the one.

    Args:
        device: The one that was chosen.

    Returns:
        One device or several.
    """
    if device.type != "cuda" or ":" in str(device):
        return [device]
    return [torch.device("cuda", number) for number in range(_count_of("cuda"))]


def device_of_worker(kind: str) -> torch.device:
    """Return what a worker of a cluster computes on: the first of the GPUs that it was given, where it was given any.

    Args:
        kind: ``cpu``, ``cuda`` or ``mps``.

    Returns:
        The device.
    """
    return torch.device("cuda", 0) if kind == "cuda" else torch.device(kind)


def is_accelerator(device: torch.device) -> bool:
    """Return whether a device works beside the processor: to look at a value of its own means to wait for it."""
    return device.type != "cpu"


def precise(device: torch.device) -> torch.dtype:
    """Return the most precise numbers that a device adds up: Apple's GPUs have none of 64 bits."""
    return torch.float if device.type == "mps" else torch.double


def allows_fork(device: torch.device) -> bool:
    """Return whether processes that use the device may be forks: the libraries of GPUs do not survive one."""
    return not is_accelerator(device)


def _count_of(kind: str) -> int:
    if kind == "cuda":
        return torch.cuda.device_count() if torch.cuda.is_available() else 0
    return int(torch.backends.mps.is_available())
