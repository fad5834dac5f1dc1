"""Write a journal: append-only, and on disk after every ``sync``.

The name of a run's files is reserved by its journal, which is created first, is locked while the run lasts, and is
removed last.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

from overhead import results
from overhead.errors import CannotWrite, UsageError
from overhead.loading import files
from overhead.locks import is_at, try_lock
from overhead.results import HeaderLine, JournalLine, MissingLine, OmittedLine, PlannedLine

_PLAN = HeaderLine | MissingLine | OmittedLine | PlannedLine


class NameTaken(UsageError):
    """The files of a run cannot have this name: another run uses it, or a file has it."""


class Journal:
    """A journal open for appending, and locked. Writes are buffered until ``sync``.

    The header and the plan are held back until the first measurement, so a run that ends earlier leaves at most an
    empty file. ``kept``: whether the file stays when it is closed, because it is not empty.
    """

    def __init__(self, path: Path) -> None:
        """Open and lock the file; make it if there is none. Raises ``UsageError``."""
        self.path = path
        self._file = _open_locked(path)
        self.kept = os.fstat(self._file.fileno()).st_size > 0
        self._held: list[bytes] = []

    @classmethod
    def reserve(cls, path: Path) -> Journal:
        """The journal for a new run, whose other files do not exist yet; an empty file is taken over.

        Raises ``NameTaken`` if the name is in use, or ``CannotWrite``.
        """
        written = (fingerprint_path(path), samples_path(path))
        for own in (path, *written, *map(files.part_path, written)):
            _check_name(own)
        journal = cls(path)
        try:
            for other in written:
                if os.path.lexists(other):
                    raise NameTaken(f"{other}: exists; measured results are not overwritten")
            if journal.kept:
                raise NameTaken(f"{path}: exists; measured results are not overwritten")
        except NameTaken:
            journal.close()
            raise
        return journal

    def write(self, lines: Iterable[JournalLine]) -> None:
        try:
            for line in lines:
                if not self.kept:
                    self._held.append(results.encode_line(line))
                    if not isinstance(line, _PLAN):
                        self.keep()
                else:
                    self._file.write(results.encode_line(line))
        except OSError as error:
            raise self._failed_write(error) from None

    def keep(self) -> None:
        """Write what was held back, and hold back nothing further. Raises ``CannotWrite``."""
        self.kept = True
        try:
            self._file.writelines(self._held)
        except OSError as error:
            raise self._failed_write(error) from None
        self._held.clear()

    def sync(self) -> None:
        """Write everything to the disk. A file that was removed meanwhile is made again, with all its lines."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            if not is_at(self._file.fileno(), self.path):
                self._make_again()
        except OSError as error:
            raise self._failed_write(error) from None

    def _make_again(self) -> None:
        """Raises ``OSError``, if another file has the name."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "xb"):
            pass
        gone, self._file = self._file, _open_locked(self.path)
        with gone:
            gone.seek(0)
            shutil.copyfileobj(gone, self._file)
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file, which also gives up its lock. A file that is not to be kept is removed.

        A second call does nothing.
        """
        if not self.kept and not self._file.closed:
            self.discard()
        try:
            self._file.close()
        except OSError as error:
            raise self._failed_write(error) from None

    def discard(self) -> None:
        """Remove the file, if nobody has put another one in its place, and close it."""
        self.kept = False
        own = not self._file.closed and is_at(self._file.fileno(), self.path)
        with contextlib.suppress(OSError):
            self._file.close()  # before the removal: Windows removes no open file
        if own:
            self.path.unlink(missing_ok=True)

    def _failed_write(self, error: OSError) -> CannotWrite:
        return CannotWrite(f"{self.path}: {error.strerror or error}; what was measured before is kept")


def fingerprint_path(journal: Path) -> Path:
    return journal.with_suffix(".json")


def samples_path(journal: Path) -> Path:
    return journal.with_suffix(".samples.jsonl.gz")


def _check_name(path: Path) -> None:
    """Raise ``UsageError`` if no file can have this name, or if something else than a file has it."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise CannotWrite(f"{path}: {error.strerror or error}") from None
    if not stat.S_ISREG(mode):
        raise CannotWrite(f"{path}: is a {'folder' if stat.S_ISDIR(mode) else 'special file'}, not a file")


def _open_locked(path: Path) -> io.BufferedRandom:
    while True:
        try:
            file = open(path, "a+b")  # noqa: SIM115 - closed in close()
        except OSError as error:
            raise CannotWrite(f"{path}: {error.strerror or error}") from None
        if not try_lock(file.fileno()):
            file.close()
            raise NameTaken(f"{path}: in use by another run, which is still measuring")
        if is_at(file.fileno(), path):
            return file
        file.close()  # a run that ended meanwhile has removed it
