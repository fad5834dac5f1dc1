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
from pathlib import Path

from overhead.errors import CannotWrite
from overhead.locks import is_at, try_lock

PREFIX = "overhead-"
"""How the names of temporary folders begin; ``sweep`` looks for it."""
_OWNER, _FILES = "owner", "files"

_one_thread = threading.Lock()
_own: tuple[int, Path, int] | None = None
"""Process id, folder, and descriptor of the locked file. A forked child must not remove its parent's folder."""


def folder() -> Path:
    """The folder for the temporary files of this process. Creates it at the first call."""
    global _own
    with _one_thread:
        if _own is None or _own[0] != os.getpid() or not (_own[1] / _FILES).is_dir():
            atexit.register(remove)
            _own = (os.getpid(), *_new_folder())
        return _own[1] / _FILES


def _new_folder() -> tuple[Path, int]:
    while True:
        try:
            path = Path(tempfile.mkdtemp(prefix=PREFIX))
            (path / _FILES).mkdir()
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
    if _own is not None and _own[0] == os.getpid():
        (_, path, descriptor), _own = _own, None
        _remove(path, descriptor)


def sweep() -> None:
    """Remove the folders of processes that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{_OWNER}"):
        with contextlib.suppress(OSError):
            if not path.parent.is_symlink():
                descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
                if try_lock(descriptor):
                    _remove(path.parent, descriptor)
                else:
                    os.close(descriptor)


def _remove(path: Path, descriptor: int) -> None:
    """Remove a folder whose lock this process holds; ``owner`` last, so that a removal that is cut short is repeated.

    Windows removes no open file, so the lock is given up before its file is removed.
    """
    shutil.rmtree(path / _FILES, ignore_errors=True)
    os.close(descriptor)
    shutil.rmtree(path, ignore_errors=True)
