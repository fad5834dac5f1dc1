"""Which records were measured on one board. Two boards of one model differ by more than the intervals of either."""

from __future__ import annotations

from overhead.devices import is_board_id
from overhead.results import Fingerprint, Record


def boards_of(run: Fingerprint) -> list[str]:
    """The ids of the physical boards in the run, in its order."""
    return list(dict.fromkeys(record.device for record in run.records if is_board_id(record.device)))


def why_apart(first: str, second: str) -> str:
    """Why figures of these two devices must not be subtracted or divided; '' where they may."""
    if first != second and is_board_id(first) and is_board_id(second):
        return f"measured on different boards ({first} and {second})"
    return ""


def apart(first: Record, second: Record) -> str:
    """``why_apart`` of two records."""
    return why_apart(first.device, second.device)
