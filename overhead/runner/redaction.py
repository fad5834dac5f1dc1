"""Journal lines without what tells who and where: host, user and paths leave every free text before it is written."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from overhead.machine import redact
from overhead.results import JournalLine

L = TypeVar("L", bound=JournalLine)
FREE = frozenset({"reason", "mend", "environment", "window", "driver", "rule"})
"""Fields that hold words from outside. Names of stacks, cases and targets are ours: a host called ``torch`` may not
change them."""


def redacted(line: L) -> L:
    """The line with every string under a free field redacted; everything else stays."""
    return msgspec.convert(_walk(msgspec.to_builtins(line), free=False), type(line))


def _walk(value: Any, free: bool) -> Any:
    match value:
        case str():
            return redact(value) if free else value
        case dict():
            return {k: _walk(v, free or k in FREE) for k, v in value.items()}
        case list():
            return [_walk(v, free) for v in value]
        case _:
            return value
