"""Import a GPU library, or raise an error with the reason why it is unavailable."""

from __future__ import annotations

import importlib
from typing import Any

from overhead.probes.base import Unavailable

_LONGEST_REASON = 200
"""Most characters of the library's message that the reason quotes."""


def import_library(name: str, mend: str) -> Any:
    """The imported module. Raises ``Unavailable`` with the message of the library in one line.

    ``mend``: the command that installs the library.
    """
    try:
        return importlib.import_module(name)
    except Exception as error:  # a library built for another version may raise anything
        reason = " ".join(str(error).split())[:_LONGEST_REASON]
        raise Unavailable(f"{name} does not import: {reason}", mend) from error
