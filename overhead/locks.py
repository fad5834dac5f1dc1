"""Locks on open files, and the lock of the devices. The system releases a lock when its process
ends.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from overhead.errors import UsageError

DEVICE_LOCK = "overhead-device.lock"
_POLL_S = 0.2
"""Seconds between two tries to lock. Chosen, not measured."""
_LONGEST_PID = 20
"""Digits of a process id, at most: a longer text is of somebody else."""
_WINDOWS_OFFSET = 2**31 - 2
"""Windows forbids others to read the locked bytes, so one byte behind the end of every file is
locked.
"""


def try_lock(descriptor: int) -> bool:
    """Lock the open file; False if it is locked already. True also on a file system that has no
    locks.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            at = os.lseek(descriptor, 0, os.SEEK_CUR)  # it locks the byte at the file's position
            # Windows forbids others to read locked bytes, so the one that is locked lies far behind
            # the end.
            os.lseek(descriptor, _WINDOWS_OFFSET, os.SEEK_SET)
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            finally:
                os.lseek(descriptor, at, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # These two errors mean that it is locked; any other, that there are no locks here.
        return not isinstance(error, BlockingIOError | PermissionError)
    return True


def shared_folder() -> Path:
    """A folder that is the same for all users and programs of the machine, whatever ``TMPDIR``
    is, so that all find the same lock. The temporary folder of this process if there is none.
    """
    name = "/tmp"
    if sys.platform == "win32":
        name = os.environ.get("PROGRAMDATA", "")
    folder = Path(name)
    if folder.is_absolute() and folder.is_dir():
        return folder
    return Path(tempfile.gettempdir())


@contextlib.contextmanager
def device_lock(waiting: Callable[[float], None], folder: Path | None = None) -> Iterator[None]:
    """A ``with`` block that holds the lock of this machine's devices: no two runs measure at the
    same time.

    While another run holds the lock, ``waiting`` is called again and again with the seconds since
    this one began to wait. Raises ``UsageError`` if there can be no lock.
    """
    # The lock belongs to the open file: it ends with it, also if this process is killed.
    descriptor = _open_lock((folder or shared_folder()) / DEVICE_LOCK)
    try:
        began = time.monotonic()
        while not try_lock(descriptor):
            waiting(time.monotonic() - began)
            time.sleep(_POLL_S)
        _write_holder(descriptor)
        yield
    finally:
        os.close(descriptor)  # which releases the lock


def device_lock_holder(folder: Path | None = None) -> int | None:
    """The id of the process that holds the lock of the devices, or held it last, as the lock's file
    says; None if it has ended or is not known. A run that waits names it.
    """
    import psutil

    path = (folder or shared_folder()) / DEVICE_LOCK
    # Another user may have put a link or a pipe there, which could hang.
    never_hangs = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, os.O_RDONLY | never_hangs)
    except OSError:
        return None
    try:
        # One byte more than the longest id, to see whether there is more.
        text = os.read(descriptor, _LONGEST_PID + 1)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if not text.isdigit() or len(text) > _LONGEST_PID:  # of an older version, or of somebody else
        return None
    pid = int(text)
    try:
        return pid if psutil.pid_exists(pid) else None
    except OverflowError:  # a larger number than any process id
        return None


def _write_holder(descriptor: int) -> None:
    """Write the id of this process, which holds the lock, into the lock's file, for those who wait.
    If it cannot be written, the lock holds all the same.
    """
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, str(os.getpid()).encode())


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """A ``with`` block that holds the lock of this file, so that no other process that asks for the
    lock is in such a block at the same time. Waits for it. The file is made if missing.
    """
    with open(path, "ab") as file:
        while not try_lock(file.fileno()):
            time.sleep(_POLL_S)
        yield


def check_device_lock() -> None:
    """Raise ``UsageError`` if there can be no lock, before anything is measured."""
    os.close(_open_lock(shared_folder() / DEVICE_LOCK))


def _open_lock(path: Path) -> int:
    """A descriptor of the lock's file, which is made if missing, so that every user may open it.
    Raises ``UsageError`` if it is a link, or anything but a regular file.
    """
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
    try:
        try:
            # Linux may refuse O_CREAT for a file of another user in /tmp (fs.protected_regular).
            descriptor = os.open(path, flags)
        except FileNotFoundError:
            descriptor = os.open(path, flags | os.O_CREAT, 0o666)
            # Again, because the umask of this process takes rights away from others.
            if hasattr(os, "fchmod"):
                with contextlib.suppress(OSError):  # another user has created it meanwhile
                    os.fchmod(descriptor, 0o666)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        why = "not a regular file"
    except OSError as error:
        why = error.strerror or str(error)
    raise UsageError(
        f"{path}: {why}; two runs at the same time would disturb each other: remove it, and start"
        " again"
    )
