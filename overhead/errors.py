"""The one family of errors that the command line answers with a single line and exit 2."""

from __future__ import annotations


class UsageError(ValueError):
    """Wrong use or bad input: the message is one line that says what and where."""
