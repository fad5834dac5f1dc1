"""Journal lines without what tells who and where: host, user and paths leave every text field before it is written."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from overhead.machine import redact
from overhead.results import Line

L = TypeVar("L", bound=Line)


def redacted(line: L) -> L:
    """The line with every string value redacted; keys and numbers stay."""
    return msgspec.convert(_walk(msgspec.to_builtins(line)), type(line))


def _walk(value: Any) -> Any:
    match value:
        case str():
            return redact(value)
        case dict():
            return {k: _walk(v) for k, v in value.items()}
        case list():
            return [_walk(v) for v in value]
        case _:
            return value
