"""The lines of errors of wrong use."""

from __future__ import annotations

from overhead.errors import UsageError
from overhead.words.reasons import sentence


def usage_error(error: UsageError) -> str:
    """The line of an error of wrong use or bad input: its message, and the reason at its end."""
    return f"{error.message}{sentence(error.reason)}"
