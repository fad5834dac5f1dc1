"""Reasons by their codes, for tests of what is said."""

from __future__ import annotations

from collections.abc import Iterable

from overhead.results import Reason


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
