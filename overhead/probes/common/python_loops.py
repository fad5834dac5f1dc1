"""Plain Python loops over n units, for the chains of several stacks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat

Action = Callable[[], object]
"""One launch, wait or read."""
Issue = Callable[[int], None]
"""Issues n units."""


def repeated(action: Action) -> Issue:
    """A loop that runs the action n times."""

    def loop(n: int) -> None:
        for _ in repeat(None, n):
            action()

    return loop


def alternating(first: Action, second: Action) -> Issue:
    """A loop that runs both actions, one after the other, n times."""

    def loop(n: int) -> None:
        for _ in repeat(None, n):
            first()
            second()

    return loop


def in_sequence(first: Action, second: Action) -> Action:
    """An action that runs both, one after the other."""

    def both() -> None:
        first()
        second()

    return both


def nothing() -> None:
    """Do nothing: the wait of a synchronous stack, or the launch of an empty recording."""
