"""What things of the file are called on pages and in the terminal."""

from __future__ import annotations

from overhead.results import Caller

CALLER_WORDS: dict[Caller, str] = {
    "binding": "from Python",
    "browser": "from JavaScript",
    "ffi": "from Python, no wrapper objects",
    "native": "from compiled code",
}
"""Who makes the calls."""
