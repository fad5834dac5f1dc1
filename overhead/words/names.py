"""What things of the file are called on pages and in the terminal."""

from __future__ import annotations

from overhead.reading.host_shares import Layer
from overhead.results import Caller

CALLER_WORDS: dict[Caller, str] = {
    "binding": "from Python",
    "browser": "from JavaScript",
    "ffi": "from Python, no wrapper objects",
    "native": "from compiled code",
}
"""Who makes the calls."""
LAYERS: dict[Layer, str] = {
    "binding": "wrapper objects",
    "interpreter": "interpreter",
    "python": "Python",
    "api and driver": "library and driver",
    "driver": "driver",
    "library": "library",
    "rest": "rest, not split",
}
"""Who takes a part of the CPU time of a call."""
