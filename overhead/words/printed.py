"""A list of the figures that were turned into text while a document was made, so that each can be
checked.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import math
from collections.abc import Iterator

from overhead.results import Origin, Value


@dataclasses.dataclass(frozen=True)
class Printed:
    """A figure as a reader sees it. ``value`` is in the unit of the run, and the text may be in
    another: ns, and µs.
    """

    text: str
    value: Value


_list: contextvars.ContextVar[list[Printed] | None] = contextvars.ContextVar(
    "printed", default=None
)


def printed(text: str, value: Value) -> str:
    """The text, which shows the value; it is noted where a document is being made."""
    found = _list.get()
    if found is not None:
        found.append(Printed(text, value))
    return text


def of_the_method(text: str) -> str:
    """The text, which has numbers that no run gives, such as ``9 of 10 runs``."""
    return printed(text, Value(math.nan, origin=Origin(operation="of the method")))


def named_in_a_file(text: str) -> str:
    """The text, which has numbers that are a part of a name in the file of a run, and no
    figures.
    """
    return printed(text, Value(math.nan, origin=Origin(operation="named in a file")))


@contextlib.contextmanager
def noting() -> Iterator[list[Printed]]:
    """Context manager: while it is open, each figure that becomes text is added to the list,
    so that a checker can tell what each number of a document is.
    """
    # ``_list``: a context variable, where ``printed`` looks for the list. The old one comes back
    # at the end, so that one block may lie in another.
    found: list[Printed] = []
    token = _list.set(found)
    try:
        yield found
    finally:
        _list.reset(token)
