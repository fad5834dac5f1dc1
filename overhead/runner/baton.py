"""The machine's baton: whoever measures holds it, so that two runs never measure at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout


@contextmanager
def baton(waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the machine's baton; ``waiting`` is called once if another run holds it."""
    lock = FileLock(Path(tempfile.gettempdir()) / "overhead-baton.lock", mode=0o666)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        waiting()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
