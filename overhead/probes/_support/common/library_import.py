"""Import a GPU library, or give the reason why it is unavailable."""

from __future__ import annotations

import importlib
from typing import Any

from overhead.probes.base import Unavailable

_LONGEST_REASON = 200
"""Characters of the library's own message."""


def import_library(name: str, mend: str) -> Any:
    """The module. Raises ``Unavailable`` with the library's message on one line; ``mend`` is the command to install."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # a library built for another version may raise anything
        reason = " ".join(str(error).split())[:_LONGEST_REASON]
        raise Unavailable(f"{name} does not import: {reason}", mend) from error
