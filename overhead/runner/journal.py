"""Write a journal (append-only, on disk after every ``sync``), and read the journal of an interrupted run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from overhead import results
from overhead.errors import CannotWrite
from overhead.loading import files
from overhead.results import (
    EndedLine,
    FailedLine,
    HeaderLine,
    JournalLine,
    OneOffLine,
    OpenedLine,
    PlannedLine,
    RoundLine,
)


class Journal:
    """A journal open for appending. Writes are buffered until ``sync``."""

    def __init__(self, path: Path, *, append: bool) -> None:
        self.path = path
        try:
            if append:
                _drop_cut_line(path)
            self._file = open(path, "ab" if append else "xb")  # noqa: SIM115 - closed in close()
        except OSError as error:
            raise CannotWrite(f"{path}: {error.strerror or error}") from None

    def write(self, lines: Iterable[JournalLine]) -> None:
        try:
            self._file.writelines(results.encode_line(line) for line in lines)
        except OSError as error:
            raise self._failed_write(error) from None

    def sync(self) -> None:
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._failed_write(error) from None

    def close(self) -> None:
        try:
            self._file.close()
        except OSError as error:
            raise self._failed_write(error) from None

    def _failed_write(self, error: OSError) -> CannotWrite:
        return CannotWrite(f"{self.path}: {error.strerror or error}; what was written before is kept, use --resume")


def note_ladder(ladders: dict[str, list[int]], line: JournalLine) -> None:
    """Store the first ladder of each case by its key, or an empty ladder if the wait of the case polls."""
    if isinstance(line, OneOffLine) and line.name in ("ladder", "wait_quantum"):
        key = f"{line.target} {line.case}"
        ladders.setdefault(key, [int(n) for n in line.values])
        if line.name == "wait_quantum":
            ladders[key] = []


class Past:
    """The contents of an interrupted run's journal: header, plan, completed processes, and ladders of the cases."""

    def __init__(self, path: Path) -> None:
        lines = list(files.read_journal(path))
        header = lines[0]
        assert isinstance(header, HeaderLine)  # read_journal yields the header first
        self.header = header
        self.planned = [line for line in lines if isinstance(line, PlannedLine)]
        self.done = dict.fromkeys({p.worker for p in self.planned}, 0)
        self.next_process: dict[str, int] = dict.fromkeys(self.done, 0)
        self.ladders: dict[str, list[int]] = {}
        for line in lines:
            note_ladder(self.ladders, line)
            if isinstance(line, EndedLine):
                self.done[line.worker] = self.done.get(line.worker, 0) + 1
            if isinstance(line, OpenedLine | OneOffLine | RoundLine | FailedLine | EndedLine):
                self.next_process[line.worker] = max(self.next_process.get(line.worker, 0), line.process + 1)


def _drop_cut_line(path: Path) -> None:
    """Remove the last line if a crash left it incomplete."""
    with open(path, "r+b") as file:
        body = file.read()
        if body and not body.endswith(b"\n"):
            file.truncate(body.rfind(b"\n") + 1)
