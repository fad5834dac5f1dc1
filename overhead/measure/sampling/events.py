"""The settings of a worker's sampling, and what it emits: lines of the journal, and what it does
next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from overhead.errors import (
    BadValue,
    Unavailable,
    Unsupported,
    Unverified,
    WithReason,
    message_of,
    stack_code_of,
)
from overhead.results import (
    FailedEntry,
    OneOffEntry,
    Reason,
    RoundEntry,
    Status,
    Why,
    because,
    reason_given,
    with_mend,
)


@dataclass(frozen=True)
class Settings:
    """What a worker samples and for how long. ``seconds``: for all its cases. ``precision``:
    relative half-width wanted.

    ``extras``: the cases that also get the slow one-off values (``naive_idle``, ``legacy``, the n
    of a full queue). ``staged``: the cases whose calls are timed one by one. ``met``: the cases for
    which is measured what a program pays when nothing is left out, in addition to ``seconds``.
    ``ladders``: by case, the sizes of n of an earlier process. ``names``: by case, the fields that
    name it in its lines. ``far``: the cases with an anchor (a sample beyond the line's sizes of n)
    at a hundred times the largest n. ``process``: the number of this process among those of the
    stack: only the first ones take long anchors.
    """

    seconds: float
    precision: float = 0.03
    min_rounds: int = 6
    max_rounds: int = 400
    seed: int = 0
    extras: frozenset[str] = frozenset()
    staged: frozenset[str] = frozenset()
    met: frozenset[str] = frozenset()
    far: frozenset[str] = frozenset()
    ladders: Mapping[str, Sequence[int]] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    process: int = 0


@dataclass(frozen=True)
class Doing:
    """Says what the worker does next, before any step that may hang or crash, and never while
    something is timed.

    Without a case: other workers may measure before ``emit`` returns. ``others``: another worker
    should measure first.
    """

    case: str
    what: str
    others: bool = False


Event = Doing | RoundEntry | OneOffEntry | FailedEntry
"""After a ``FailedEntry`` its case is not measured further in this process."""


def status_of(error: BaseException) -> Status:
    """The status of a case whose chain raised this exception."""
    if isinstance(error, Unverified):
        return "unverified"
    if isinstance(error, Unsupported | Unavailable):
        return "unavailable"
    return "failed"


def reason_of(error: BaseException) -> Why:
    """Why a case's chain raised this exception, as its record tells it: the reason that the
    exception carries, else its message. For a stack that is not available, what would make it so
    follows.

    Where the case counts as ``failed``, the type of the exception precedes the message, and the
    line of the stack's own code follows: both help to find the mistake.
    """
    # First what happened. ``reason_given``: a code with values (``Reason``) with which an exception
    # of any class was raised. ``WithReason``: our own errors, which may carry a text as well. Of
    # all others the message.
    reason: Why = reason_given(error) or ""
    if not reason and isinstance(error, WithReason):
        reason = error.reason
    elif not reason:
        reason = message_of(error)
    # ``mend``: what would make the stack available, such as a command that installs it.
    if reason and isinstance(error, Unavailable):
        return with_mend(reason, error.mend)
    # The case is not at fault here: a type and a line of code would say nothing more.
    if reason and status_of(error) != "failed":
        return reason
    # This reason names the bad value that the stack gave, so it needs no type or line.
    if isinstance(error, BadValue) and isinstance(error.why, Reason):
        return error.why

    # Now the case failed: add the type, and the line of the stack's code if it is known.
    where = stack_code_of(error)
    kind = type(error).__name__
    if isinstance(reason, Reason):
        if where:
            return because("raised-at", why=reason, kind=kind, where=where)
        return because("raised", why=reason, kind=kind)
    if not isinstance(error, BadValue):
        reason = f"{kind}: {reason}".rstrip(": ")
    return f"{reason} ({where})" if where else reason
