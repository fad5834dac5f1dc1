"""What a reason says, for tests: its codes and values, never its words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from overhead.results import Reason, Why


def values_of(reason: Why, code: str) -> dict[str, Any]:
    """The values of the reason with this code, which is the reason itself, inside it, or holds too."""
    found = [one.values for one in _all(reason) if one.code == code]
    assert found, f"no {code} in {reason}"
    return dict(found[0])


def _all(reason: Why) -> Iterator[Reason]:
    if isinstance(reason, str):
        return
    yield reason
    for value in reason.values.values():
        if isinstance(value, Reason):
            yield from _all(value)
    for one in reason.also:
        yield from _all(one)
