"""Python's garbage collector while something is timed."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collector_off() -> Iterator[None]:
    """A context in which Python collects no garbage by itself, and in which a collection that is
    asked for passes over the objects that are there already, so that it takes little time.

    At its end the collector is as the program had it. Objects that the program itself had frozen
    stay frozen: Python cannot tell them from those frozen here.
    """
    enabled = gc.isenabled()
    frozen_by_the_program = gc.get_freeze_count() > 0
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        if not frozen_by_the_program:
            gc.unfreeze()
        if enabled:
            gc.enable()
