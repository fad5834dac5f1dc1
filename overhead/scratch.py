"""What a process must not leave behind: its temporary files, and how a signal ends it without
losing or leaving any.

The folder of a child process is inside that of its parent, which removes it also if the child was
killed.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from overhead.errors import CannotWrite

PREFIX = "ovh-tmp-"
"""How the names of temporary folders begin. It is short because the path of a socket may have about
100 characters.
"""
_NAME = re.compile(rf"{PREFIX}[a-z0-9_]{{8}}")
"""The names that ``mkdtemp`` makes of it: ``sweep`` removes nothing that a user named."""
PARENT = "OVERHEAD_SCRATCH"
"""The environment variable that names the folder of the parent process."""
_OLD_S = 7 * 86400.0
"""Chosen, not measured: no run lasts for a week."""

_one_thread = threading.Lock()
_own: tuple[int, Path] | None = None
"""Process id and folder. A forked child must not remove its parent's folder."""


def folder() -> Path:
    """The folder for the temporary files of this process. Creates it at the first call, and again
    if it was removed, or if this process was forked from the one that made it.
    """
    global _own
    # Kept with the id of the process: a forked one must not use its parent's folder.
    with _one_thread:
        if _own is not None:
            process, path = _own
            if process == os.getpid() and path.is_dir():
                return path
        atexit.register(remove)
        path = _new_folder()
        _own = (os.getpid(), path)
        return path


def _new_folder() -> Path:
    """A new folder, inside that of the parent process if there is one, which removes it if this
    process is killed. Raises ``CannotWrite``.
    """
    parent = os.environ.get(PARENT, "")
    try:
        if os.path.isdir(parent):
            return Path(tempfile.mkdtemp(prefix="", dir=parent))  # a browser needs a short path
        return Path(tempfile.mkdtemp(prefix=PREFIX))
    except OSError as error:
        raise CannotWrite(
            f"{tempfile.gettempdir()}: no temporary files: {error.strerror or error}"
        ) from None


def subfolder() -> tempfile.TemporaryDirectory[str]:
    """A new folder in that of this process, for a ``with`` block. What is in use on Windows is
    removed at the end.
    """
    return tempfile.TemporaryDirectory(dir=folder(), ignore_cleanup_errors=True)


def remove() -> None:
    """Remove the temporary folder of this process, if it has one."""
    global _own
    if _own is None:
        return
    process, path = _own
    if process == os.getpid():  # else it is the folder of the process that this one was forked from
        _own = None
        shutil.rmtree(path, ignore_errors=True)


def sweep() -> None:
    """Remove the folders that killed processes left more than a week ago."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/"):
        with contextlib.suppress(OSError):
            # Only old folders with a name that ``mkdtemp`` makes, and no link.
            old = time.time() - path.lstat().st_mtime > _OLD_S
            if old and _NAME.fullmatch(path.name) and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)


_SIGNALS = (
    "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGBREAK", "SIGALRM", "SIGVTALRM", "SIGPROF",
    "SIGUSR1", "SIGUSR2", "SIGXCPU", "SIGIO", "SIGPWR",
)  # fmt: skip
_DEAF_S = 15.0
"""So long after a signal further ones are ignored: the run is ending its workers, which takes a
bounded time.
"""


@contextlib.contextmanager
def ending_on_signals() -> Iterator[None]:
    """A ``with`` block in which signals that would end the process raise ``KeyboardInterrupt``, so
    that it ends what it has started. For some seconds after one, further ones are ignored.

    Signals that the process ignores or handles already are left alone. Does nothing outside the
    main thread, since Python allows no other thread to set handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # Far enough in the past that the first signal counts.
    last_s = -_DEAF_S

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal last_s
        if time.monotonic() - last_s >= _DEAF_S:
            last_s = time.monotonic()
            raise KeyboardInterrupt

    # Not every system has all of them.
    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    # What the system does by default, and Python's own answer to Ctrl-C.
    ends_process = (signal.SIG_DFL, signal.default_int_handler)
    before = {}
    for number in numbers:
        handler = signal.getsignal(number)
        if handler in ends_process:
            before[number] = handler
    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
