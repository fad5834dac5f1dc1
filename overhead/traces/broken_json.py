"""Read what can be read of a trace whose JSON is not valid. Pure.

Writers of traces do not escape what names hold: quotes and backslashes of Python's frames, line
breaks, numbers that are NaN. Or they crash before the end. Each event is an object of its own, so
that one that is broken costs only itself.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

MOST_SECONDS = 60.0
"""Most seconds for mending a file. Chosen, not measured; a hostile file may have millions of broken
events.
"""
_MOST_EVENT = 100_000
"""Most bytes of an event that is mended. Chosen, not measured: events of PyTorch have below 10,000,
and the search for the end of a name takes long in a hostile one.
"""

_FIELD = rb'"(?:ph|name|cat|ts|pid|tid|dur|id|args)"'
_BEGIN = re.compile(rb"(?:[}\[\n]|\A)[\s,]{0,200}(\{)\s{0,200}" + _FIELD + rb"\s*:")
"""Where an event begins: at an object with one of its fields that follows another object, or begins
a list or a line. ``args`` holds such objects too, behind a colon.
"""
_NAME = re.compile(
    rb'("name"\s*:\s*")(.{0,10000}?)'
    rb'("\s*(?:,\s*' + _FIELD + rb"\s*:|,?\s*\}\s*(?:[,\]}]|\Z)))",
    re.DOTALL,
)
"""The name of an event with all that stands in it, up to the next field."""
_QUOTE = re.compile(rb'(?<!\\)"')
_CONTROL = re.compile(rb"[\x00-\x1f]")
_BACKSLASH = re.compile(rb'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_HALF_A_CHARACTER = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
"""One half of a character of two (a lone surrogate), which Python writes for bytes of a name that
are no text.
"""
_NO_NUMBER = re.compile(rb"(?<=[:\[,\s])[-+]?(?:nan|inf|infinity)(?=\s*[,\]}])", re.I)
_EXTRA_COMMA = re.compile(rb",(\s*[\]}])")
_MOST_CLOSED = 4
"""So many brackets close an event with lists in its arguments."""


class RawEvent(NamedTuple):
    """An event as valid JSON; None where it could not be mended. ``mended``: whether it was
    changed. ``begin``: at which byte it begins.
    """

    content: bytes | None
    mended: bool
    begin: int


def events_one_by_one(raw: bytes | bytearray) -> Iterator[RawEvent]:
    """The events of a file whose JSON is broken, each as valid JSON. Raises ``ValueError`` where it
    takes too long.
    """
    stop = time.monotonic() + MOST_SECONDS
    begin = -1
    for found in _BEGIN.finditer(raw, max(0, raw.find(b'"traceEvents"'))):
        if begin >= 0:
            yield _event(bytes(raw[begin : found.start(1)]), begin, stop)
        begin = found.start(1)
    if begin >= 0:
        # What follows the last event are other fields of the file.
        yield _event(bytes(raw[begin : begin + _MOST_EVENT]), begin, stop)


def header_of(raw: bytes | bytearray) -> bytes:
    """What the file tells before its events, as an object with no events."""
    before = bytes(raw[: max(0, raw.find(b'"traceEvents"'))]).rstrip().rstrip(b",")
    if not before.lstrip().startswith(b"{"):
        return b'{"traceEvents": []}'
    comma = b"" if before.rstrip().endswith(b"{") else b","
    return before + comma + b'"traceEvents": []}'


def ends_with_its_list(raw: bytes | bytearray) -> bool:
    """Whether a file that begins as an object is closed at its end; one that was cut is not."""
    return raw.rstrip().endswith(b"}") and raw.lstrip().startswith(b"{")


def _event(part: bytes, begin: int, stop: float) -> RawEvent:
    """The event that begins ``part``, up to its last bracket. ``stop``: when the time is over."""
    whole = _closed(part)
    if whole is not None:
        return RawEvent(whole, mended=False, begin=begin)
    if time.monotonic() > stop:
        raise ValueError(f"broken JSON that takes over {MOST_SECONDS:.0f} s to mend")
    mended = None
    if len(part) <= _MOST_EVENT:
        mended = _closed(_with_valid_text(part))
    return RawEvent(mended, mended=True, begin=begin)


def _closed(part: bytes) -> bytes | None:
    """The object that begins ``part``, with as many brackets at its end as it needs; None if that
    is no valid JSON.

    Behind an event stand commas and the brackets of the list and of the file.
    """
    if _is_valid(part.rstrip(b" \r\n\t,")):
        return part.rstrip(b" \r\n\t,")
    start = part.rstrip(b" \r\n\t,]}")
    for closed in range(1, _MOST_CLOSED):
        whole = start + b"}" * closed
        if _is_valid(whole):
            return whole
    # The last event: other fields of the file follow behind the list.
    end = re.search(rb"\}\s{0,200}\]\s{0,200}(?:,|\}\s{0,200}\Z)", part)
    if end is not None and _is_valid(part[: end.start() + 1]):
        return part[: end.start() + 1]
    return None


def _is_valid(content: bytes) -> bool:
    try:
        msgspec.json.decode(content, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _with_valid_text(part: bytes) -> bytes:
    """The event with its text escaped, and without numbers and commas that JSON does not know."""
    part = part.decode("utf-8", errors="replace").encode()
    part = _CONTROL.sub(b" ", part)
    part = _BACKSLASH.sub(rb"\\\\", part)
    part = _HALF_A_CHARACTER.sub(rb"\\ufffd", part)
    part = _NAME.sub(_with_escaped_quotes, part)
    part = _NO_NUMBER.sub(b"null", part)
    return _EXTRA_COMMA.sub(rb"\1", part)


def _with_escaped_quotes(name: re.Match[bytes]) -> bytes:
    return name[1] + _QUOTE.sub(rb'\\"', name[2]) + name[3]
