"""Every exception that passes from one package to another."""

from __future__ import annotations


class UsageError(ValueError):
    """Wrong use or bad input. The message is one line that says what and where; the command line exits with 2."""


class BadFile(UsageError):
    """A file of another kind, cut short or beyond the bounds; the message is one line that names it."""


class BadPlugin(UsageError):
    """A plugin that cannot be used; one line."""


class BadValue(UsageError):
    """A stack handed over a value that is not allowed; one line that names the field, the value and what is allowed."""


class CannotWrite(UsageError):
    """A file cannot be written; one line that names it and says what was saved."""


class Unavailable(Exception):
    """The stack cannot be measured here. ``mend`` is the command or step that would change that."""

    def __init__(self, reason: str, mend: str = "") -> None:
        super().__init__(reason)
        self.reason, self.mend = reason, mend


class Unsupported(Exception):
    """This device or library cannot run this one case; the message is the reason."""


class Unverified(Exception):
    """Values that were read back are wrong, or an error scope caught something: the work did not happen as asked."""


def one_line(error: BaseException) -> str:
    """Type and message of an exception in one line of at most 500 characters."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")[:500]
