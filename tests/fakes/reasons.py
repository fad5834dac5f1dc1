"""Reasons by their codes, for tests of what is said."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from overhead.results import Reason, Why


def by_code(reasons: Iterable[object]) -> dict[str, Reason]:
    """The reasons by code, and those inside of them. A text from outside has none."""
    found: dict[str, Reason] = {}
    for reason in reasons:
        if isinstance(reason, Reason):
            found |= {reason.code: reason} | by_code([*reason.values.values(), *reason.also])
    return found


def first_code(reasons: Iterable[object]) -> str:
    """The code of the first reason; '' of a text."""
    first = next(iter(reasons))
    return first.code if isinstance(first, Reason) else ""


def values_of(reason: Why, code: str) -> dict[str, Any]:
    """The values of the reason with this code, which is the reason itself, inside it, or holds
    too.
    """
    found = by_code([reason])
    assert code in found, f"no {code} in {reason}"
    return dict(found[code].values)
