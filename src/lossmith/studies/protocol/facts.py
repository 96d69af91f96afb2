"""What training rows decide of losses, found out when a loss asks for it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["Facts"]


class Facts(Mapping[str, Any]):
    """Values by name that are made when they are looked up, since some take trainings to find out.

    Args:
        makers: What makes each of them.

    >>> facts = Facts({"counts": lambda: [3, 1]})
    >>> "matrix" in facts, facts["counts"]
    (False, [3, 1])
    """

    def __init__(self, makers: Mapping[str, Callable[[], Any]]) -> None:
        self._makers = makers

    def __getitem__(self, name: str) -> Any:
        return self._makers[name]()

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)
