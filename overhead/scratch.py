"""Temporary files of this process: one folder, which is removed when the process ends.

A killed process leaves its folder. The lock on the file ``owner`` in it is gone then, and ``sweep`` removes the folder.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

from overhead.errors import CannotWrite
from overhead.locks import is_at, try_lock

PREFIX = "overhead-"
_OWNER = "owner"
_EMPTY_S = 3600.0
"""A folder without ``owner`` is that of a process killed while it made the folder, if it is older than this."""

_one_thread = threading.Lock()
_own: tuple[int, Path, int] | None = None
"""Process id, folder, and descriptor of the locked file. A forked child must not remove its parent's folder."""


def folder() -> Path:
    """The temporary folder of this process. Creates it at the first call."""
    global _own
    with _one_thread:
        if _own is None or _own[0] != os.getpid() or not _own[1].is_dir():
            if _own is None or _own[0] != os.getpid():
                atexit.register(remove)
            _own = (os.getpid(), *_new_folder())
        return _own[1]


def _new_folder() -> tuple[Path, int]:
    while True:
        try:
            path = Path(tempfile.mkdtemp(prefix=PREFIX))
            descriptor = os.open(path / _OWNER, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise CannotWrite(f"{tempfile.gettempdir()}: no temporary files: {error.strerror or error}") from None
        if try_lock(descriptor) and is_at(descriptor, path / _OWNER):
            return path, descriptor
        os.close(descriptor)  # another process has swept the folder before it was locked


def subfolder() -> tempfile.TemporaryDirectory[str]:
    """A folder in the temporary folder of this process, for a ``with`` block.

    Windows removes no file that is in use. Such a file is removed when this process ends.
    """
    return tempfile.TemporaryDirectory(dir=folder(), ignore_cleanup_errors=True)


def remove() -> None:
    """Remove the temporary folder of this process, if it has one."""
    global _own
    if _own is None or _own[0] != os.getpid():
        return
    (_, path, descriptor), _own = _own, None
    _remove(path, descriptor)


def sweep() -> None:
    """Remove the folders of processes of this user that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            _sweep(path)


def _sweep(path: Path) -> None:
    if path.is_symlink() or not path.is_dir() or (hasattr(os, "getuid") and path.stat().st_uid != os.getuid()):
        return
    try:
        descriptor = os.open(path / _OWNER, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        if time.time() - path.stat().st_mtime > _EMPTY_S:
            path.rmdir()
        return
    if try_lock(descriptor):
        _remove(path, descriptor)
    else:
        os.close(descriptor)


def _remove(path: Path, descriptor: int) -> None:
    """Remove a folder whose lock this process holds; ``owner`` last, so that a removal that is cut short is repeated.

    Windows removes no open file, so there the lock is given up before its file is removed.
    """
    for inside in path.iterdir() if path.is_dir() else ():
        if inside.name != _OWNER:
            with contextlib.suppress(OSError):
                shutil.rmtree(inside) if inside.is_dir() and not inside.is_symlink() else inside.unlink()
    if os.name == "nt":
        os.close(descriptor)
    shutil.rmtree(path, ignore_errors=True)
    if os.name != "nt":
        os.close(descriptor)
