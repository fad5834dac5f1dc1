"""Keep Python's garbage collector from looking at millions of objects that all stay."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def without_garbage_collection() -> Iterator[None]:
    """A ``with`` block without passes of the collector. A trace of a million events is millions of
    objects without cycles, and passes over them took 15 % of the time of its explanation.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
