"""Several replicates at a time, where one alone would leave most of a cluster idle."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

__all__ = ["side_by_side"]


def side_by_side(work: Callable[[int], object], seeds: Sequence[int], at_once: int, stop: Callable[[], object]) -> None:
    """Do the work of all replicates, several of them at a time.

    Each waits in a thread of its own for what the engine finds; what trains is elsewhere.

    Args:
        work: Does what one replicate lacks.
        seeds: The replicates.
        at_once: How many at a time; one is done in this thread.
        stop: Called where one has failed or the user interrupts: it must make the others end.
    """
    if at_once <= 1:
        for seed in seeds:
            work(seed)
        return
    with ThreadPoolExecutor(at_once, "replicate") as pool:
        begun = [pool.submit(work, seed) for seed in seeds]
        try:
            for one in as_completed(begun):
                one.result()
        except BaseException:
            for one in begun:
                one.cancel()
            stop()
            raise
