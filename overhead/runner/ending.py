"""Signals that end a run raise ``KeyboardInterrupt``, so that it keeps what it measured and removes its other files."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

_NAMES = (
    "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGBREAK", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGUSR1", "SIGUSR2",
    "SIGXCPU", "SIGIO", "SIGPWR",
)  # fmt: skip
_DEAF_S = 15.0
"""So long after a signal further ones are ignored: the run is ending its workers, which takes a bounded time."""


@contextlib.contextmanager
def ending_on_signals() -> Iterator[None]:
    """Let these signals raise ``KeyboardInterrupt``, except those that the process ignores or handles already.

    Does nothing outside the main thread, where Python handles no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    last_s = -_DEAF_S

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal last_s
        if time.monotonic() - last_s >= _DEAF_S:
            last_s = time.monotonic()
            raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    usual = (signal.SIG_DFL, signal.default_int_handler)
    before = {number: handler for number in numbers if (handler := signal.getsignal(number)) in usual}
    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
