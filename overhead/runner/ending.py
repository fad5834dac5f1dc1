"""Signals that end a run raise ``KeyboardInterrupt``, so that it keeps what it measured and removes its other files."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Collection, Iterator
from types import FrameType

_NAMES = (
    "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGBREAK", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGUSR1", "SIGUSR2",
    "SIGXCPU", "SIGIO", "SIGPWR",
)  # fmt: skip
_came = False
"""Whether a signal has come since ``ending_on_signals`` began."""
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
        global _came
        nonlocal last_s
        _came = True
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
        _forget(before)
        for number, handler in before.items():
            signal.signal(number, handler)


def _forget(handled: Collection[int]) -> None:
    """Forget a signal that came, if this block has handled it and not one around it."""
    global _came
    _came = _came and not handled


def end_if_signalled() -> None:
    """Raise ``KeyboardInterrupt`` if a signal came. Python drops an exception that a handler raises in a finaliser."""
    if _came:
        raise KeyboardInterrupt
