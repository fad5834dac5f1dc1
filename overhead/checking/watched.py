"""The parameters of a case, which remember what a stack reads of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from overhead.results import Case


class Watched(dict[str, Any]):
    """The parameters of a case. Remembers which ones the stack read."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        super().__init__(params)
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)

    def __iter__(self) -> Iterator[str]:
        self.read.update(super().keys())
        return super().__iter__()

    def items(self) -> Any:
        self.read.update(super().keys())
        return super().items()

    def values(self) -> Any:
        self.read.update(super().keys())
        return super().values()

    def __eq__(self, other: object) -> bool:
        self.read.update(super().keys())
        return super().__eq__(other)

    __hash__ = None


def watched(case: Case) -> tuple[Case, Watched]:
    """A copy of the case, and its parameters, which record each key that is read."""
    copy, params = msgspec.structs.replace(case), Watched(case.params)
    msgspec.structs.force_setattr(copy, "params", params)
    return copy, params
