"""Write a journal (append-only, on disk after every ``sync``), and read the journal of an interrupted run.

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

import msgspec

from overhead import results
from overhead.bounded_files import read_whole
from overhead.errors import BadFile, CannotWrite, UsageError
from overhead.loading import files
from overhead.locks import is_at, try_lock
from overhead.results import (
    DiedLine,
    EndedLine,
    FailedLine,
    HeaderLine,
    JournalLine,
    OneOffLine,
    OpenedLine,
    PlannedLine,
    RoundLine,
)

_MEASURED = OpenedLine | OneOffLine | RoundLine | FailedLine | DiedLine | EndedLine
_HEADER = b'{"type":"header"'
_LONGEST_HEADER_BYTES = 1 << 16
_MOST_PROCESSES = 1_000_000


class NameTaken(UsageError):
    """The files of a run cannot have this name: another run uses it, or a file has it."""


class NothingMeasured(UsageError):
    """The run of a journal was killed while it wrote its plan."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path}: its run was killed before it measured anything; start it again")


class Journal:
    """A journal open for appending, and locked. Writes are buffered until ``sync``."""

    def __init__(self, path: Path, *, create: bool) -> None:
        """Open and lock the file; with ``create``, make it if there is none. Raises ``UsageError``."""
        self.path = path
        self._file = _open_locked(path, create)
        self._keep = os.fstat(self._file.fileno()).st_size > 0

    @classmethod
    def reserve(cls, path: Path) -> Journal:
        """The journal for a new run, whose other files do not exist yet; ``clear`` it before it is written.

        The journal of a run that ended before it measured is taken over. Raises ``NameTaken`` if the name is in use, or
        ``CannotWrite``.
        """
        written = (fingerprint_path(path), samples_path(path))
        for own in (path, *written, *map(files.part_path, written)):
            _check_name(own)
        journal = cls(path, create=True)
        try:
            for other in written:
                if os.path.lexists(other):
                    raise NameTaken(f"{other}: exists; measured results are not overwritten")
            if journal._keep and holds_measurements(path):
                raise NameTaken(f"{path}: exists; if it is the journal of an interrupted run, --resume goes on with it")
        except NameTaken:
            journal.close()
            raise
        return journal

    def _end_last_line(self, start: int, body: bytes) -> None:
        """Remove a last line that was cut off, or add the line break if that alone was cut off."""
        try:
            results.decode_line(body[start:])
        except (msgspec.DecodeError, RecursionError, ValueError):
            self._file.truncate(start)
        else:
            self._file.write(b"\n")

    def clear(self) -> None:
        """Remove the plan that another run has left in the file."""
        self._file.truncate(0)
        self._keep = False

    def keep(self) -> None:
        """Let the file stay when it is closed: the whole plan of the run is on the disk, for all its journals."""
        self._keep = True

    @classmethod
    def reopen(cls, path: Path) -> Journal:
        """The journal of an interrupted run, without a last line that a crash cut off. Raises ``UsageError``.

        Parts of files that the run was writing are removed.
        """
        if path.suffix != ".jsonl":
            raise UsageError(f"{path}: only a journal (.jsonl) can be resumed")
        journal = cls(path, create=False)
        try:
            for own in (fingerprint_path(path), samples_path(path)):
                files.part_path(own).unlink(missing_ok=True)
            body = path.read_bytes()
            if body and not body.endswith(b"\n"):
                journal._end_last_line(body.rfind(b"\n") + 1, body)
        except OSError as error:
            journal.close()
            raise CannotWrite(f"{path}: {error.strerror or error}") from None
        return journal

    def write(self, lines: Iterable[JournalLine]) -> None:
        try:
            self._file.writelines(results.encode_line(line) for line in lines)
        except OSError as error:
            raise self._failed_write(error) from None

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
        gone, self._file = self._file, _open_locked(self.path, create=False)
        with gone:
            gone.seek(0)
            shutil.copyfileobj(gone, self._file)
        self._file.flush()
        os.fsync(self._file.fileno())

    @property
    def can_be_resumed(self) -> bool:
        """Whether the whole plan of the run is on the disk, and the run has not ended."""
        return self._keep and not self._file.closed

    def close(self) -> None:
        """Close the file, which also gives up its lock. A file that is not to be kept is removed.

        A second call does nothing.
        """
        if not self._keep and not self._file.closed:
            self.discard()
        try:
            self._file.close()
        except OSError as error:
            raise self._failed_write(error) from None

    def discard(self) -> None:
        """Remove the file, if nobody has put another one in its place, and close it."""
        own = not self._file.closed and is_at(self._file.fileno(), self.path)
        if os.name == "nt":  # Windows removes no open file
            self._file.close()
        if own:
            self.path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._file.close()

    def _failed_write(self, error: OSError) -> CannotWrite:
        return CannotWrite(f"{self.path}: {error.strerror or error}; what was written before is kept, use --resume")


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


def _open_locked(path: Path, create: bool) -> io.BufferedRandom:
    while True:
        try:
            if not create:
                _check_name(path)
                os.stat(path)
            file = open(path, "a+b")  # noqa: SIM115 - closed in close()
        except FileNotFoundError as error:
            raise BadFile(f"{path}: {error.strerror}") from None
        except OSError as error:
            raise CannotWrite(f"{path}: {error.strerror or error}") from None
        if not try_lock(file.fileno()):
            file.close()
            raise NameTaken(f"{path}: in use by another run, which is still measuring")
        if is_at(file.fileno(), path):
            return file
        file.close()  # a run that ended meanwhile has removed it


def holds_plan(path: Path) -> bool:
    """Whether the file may be of use: everything but a journal without its whole plan is."""
    try:
        Past(path)
    except NothingMeasured:
        return False
    except BadFile:
        pass
    return True


def holds_measurements(path: Path) -> bool:
    """Whether the file may hold a measurement: everything but a journal with at most a plan does."""
    try:
        return any(isinstance(line, _MEASURED) for line in files.read_journal(path))
    except BadFile:
        return not _is_cut_header(path)


def _is_cut_header(path: Path) -> bool:
    """Whether the file is empty, or has only a part of a journal's first line."""
    try:
        start = read_whole(path, _LONGEST_HEADER_BYTES)
    except BadFile:
        return False
    return b"\n" not in start and start[: len(_HEADER)] == _HEADER[: len(start)]


def note_ladder(ladders: dict[str, list[int]], line: JournalLine) -> None:
    """Store the first ladder of each case by its key, or an empty ladder if the wait of the case polls."""
    if isinstance(line, OneOffLine) and line.name in ("ladder", "wait_quantum"):
        key = f"{line.target} {line.case}"
        ladders.setdefault(key, [int(n) for n in line.values])
        if line.name == "wait_quantum":
            ladders[key] = []


class Past:
    """The contents of an interrupted run's journal: header, plan, completed processes, and ladders of the cases.

    Raises ``NothingMeasured`` if it has not its whole plan, or ``BadFile``.
    """

    def __init__(self, path: Path) -> None:
        try:
            lines = list(files.read_journal(path))
        except BadFile:
            if not _is_cut_header(path):
                raise
            raise NothingMeasured(path) from None
        header = lines[0]
        assert isinstance(header, HeaderLine)  # read_journal yields the header first
        self.header = header
        self.planned = [line for line in lines if isinstance(line, PlannedLine)]
        if len(self.planned) < max(1, header.planned):
            raise NothingMeasured(path)
        self.failed = {f"{line.target} {line.case}" for line in lines if isinstance(line, FailedLine)}
        self.done = dict.fromkeys({p.worker for p in self.planned}, 0)
        self.next_process: dict[str, int] = dict.fromkeys(self.done, 0)
        self.ladders: dict[str, list[int]] = {}
        for line in lines:
            note_ladder(self.ladders, line)
            if isinstance(line, EndedLine):
                self.done[line.worker] = self.done.get(line.worker, 0) + 1
            if isinstance(line, _MEASURED):
                self.next_process[line.worker] = max(self.next_process.get(line.worker, 0), line.process + 1)
        if max(self.next_process.values(), default=0) > _MOST_PROCESSES:
            raise BadFile(f"{path}: a process has a number above {_MOST_PROCESSES:,}")
        self.lacking = {p.worker for p in self.planned if self.done[p.worker] < p.wanted(header.profile)}
        """The workers that have not measured all their processes."""
