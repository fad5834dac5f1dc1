"""Keep the failure of one section from the rest of the report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

from overhead.blocks.parts import Part, Text
from overhead.errors import one_line

T = TypeVar("T")


def contained(section: str, make: Callable[[], Iterable[T]]) -> list[T | Part]:
    """What ``make`` returns. If it raises, a sentence with the reason instead, and a line on standard error.

    A section of another package may raise anything, ``SystemExit`` too.
    """
    try:
        return list(make())
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        reason = f"unavailable: section {section}: {one_line(error)}"
        print(f"overhead: {reason}", file=sys.stderr)
        return [Text([reason])]
