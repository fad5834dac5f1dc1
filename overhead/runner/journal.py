"""Write a journal: append-only, and on disk after every ``sync``.

The name of a run's files is reserved by its journal, which is created first and removed last.
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
from overhead.results import HeaderLine, JournalLine, MissingLine, OmittedLine, PlannedLine

_PLAN = HeaderLine | MissingLine | OmittedLine | PlannedLine


_EXISTS = "exists; measured results are not overwritten"


class Journal:
    """A new journal for a run. Writes are buffered until ``sync``.

    The header and the plan are held back until the first measurement, so a run that ends earlier leaves at most an
    empty file. ``kept``: whether the file stays when it is closed, because it is not empty.
    """

    def __init__(self, path: Path) -> None:
        """Create the file. Raises ``UsageError`` if it or another file of the run exists, or cannot have its name."""
        written = (fingerprint_path(path), samples_path(path))
        for own in (path, *written, *map(files.part_path, written)):
            _check_name(own)
        for other in written:
            if os.path.lexists(other):
                raise UsageError(f"{other}: {_EXISTS}")
        self.path, self.kept = path, False
        self._file = _create(path)
        self._held: list[bytes] = []

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
            if not _is_at(self._file, self.path):
                self._make_again()
        except OSError as error:
            raise self._failed_write(error) from None

    def _make_again(self) -> None:
        """Raises ``UsageError``, if another file has the name."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        gone, self._file = self._file, _create(self.path)
        with gone:
            gone.seek(0)
            shutil.copyfileobj(gone, self._file)
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file. A file that is not to be kept is removed.

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
        own = not self._file.closed and _is_at(self._file, self.path)
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


def _create(path: Path) -> io.BufferedRandom:
    try:
        return open(path, "x+b")
    except FileExistsError:
        raise UsageError(f"{path}: {_EXISTS}") from None
    except OSError as error:
        raise CannotWrite(f"{path}: {error.strerror or error}") from None


def _is_at(file: io.BufferedRandom, path: Path) -> bool:
    """Whether the open file has this path now: somebody may have removed or replaced it."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        return False
