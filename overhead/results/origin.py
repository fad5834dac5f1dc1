"""What a value was formed from, so that a checker can form it again from the files of the runs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from overhead.results.records import Figure, Fingerprint, Record

HowFormed = Literal[
    "*",
    "+",
    "/",
    "above other boards",
    "at least",
    "below other boards",
    "boards",
    "boards of a spread",
    "ceil",
    "count",
    "ends of modes",
    "hull",
    "kinds of machine",
    "maximum",
    "measured on a line",
    "median",
    "minimum",
    "named in a file",
    "number",
    "of the method",
    "point",
    "published",
    "run-to-run range",
    "share saved",
    "state of the run",
    "time of units",
    "times of other boards",
    "upper end",
]


@dataclasses.dataclass(frozen=True, eq=False)
class Origin:
    """A figure, or an operation on origins and plain numbers.

    ``mode``: of a figure with two speeds the one that is meant, by its place in ``modes``. ``of``:
    what the operation reads besides figures. ``words``: what the operation needs to know besides,
    such as the class of a spread.
    """

    figure: Figure | None = None
    mode: int | None = None
    of: Record | Fingerprint | None = None
    operation: HowFormed | None = None
    parts: tuple[Origin | float, ...] = ()
    words: str = ""


def formed(operation: HowFormed, *parts: Origin | float | None, words: str = "") -> Origin | None:
    """The origin of what the operation gives; None where the origin of a part is not known."""
    known = tuple(part for part in parts if part is not None)
    if len(known) < len(parts):
        return None
    return Origin(operation=operation, parts=known, words=words)


def time_of_units(record: Record, n: float) -> Origin:
    """The origin of the time of n units, read off the curve of the record."""
    return Origin(operation="time of units", of=record, parts=(n,))
