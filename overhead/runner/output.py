"""The files of a run: their names are reserved before anything is measured, and they are written at
the end.

A journal holds the raw samples, one line per event. It is created first, is on disk after every
``sync``, and is removed last, when the fingerprint (all figures) and the compressed samples are
written.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import shutil
import socket
import stat
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from overhead import results
from overhead.errors import CannotWrite, UsageError, raising_cannot_write
from overhead.loading import files
from overhead.machine import redacted
from overhead.public import Shown
from overhead.reading.missing_values import missing_stack
from overhead.results import (
    Fingerprint,
    HeaderEntry,
    JournalEntry,
    MissingEntry,
    OmittedEntry,
    PlannedEntry,
    Why,
)

SIDES: tuple[Literal["base", "new"], Literal["base", "new"]] = ("base", "new")
"""The two runs that a comparison measures in turn. Each has a folder of this name."""
DEFAULT_FOLDER = Path("reports/local")
_TIME = "%Y-%m-%dT%H%M%SZ"
_NOT_MEASURED = ("failed", "unavailable", "unverified")
_PLAN = HeaderEntry | MissingEntry | OmittedEntry | PlannedEntry


class _Exists(UsageError):
    """A file of the run exists already."""

    def __init__(self, path: Path, more: str = "") -> None:
        super().__init__(f"{path}: exists; measured results are not overwritten{more}")


class Journal:
    """The file of a run while it measures: a new journal, to which entries (raw samples, a line for
    each) are appended. Writes are buffered until ``sync``.

    The header and the plan are held back until the first measurement, so a run that ends earlier
    leaves at most an empty file. ``kept``: whether the file stays when it is closed, because it is
    not empty.
    """

    def __init__(self, path: Path) -> None:
        """Create the file. Raises ``UsageError`` if it or another file of the run exists, or cannot
        have its name: the run would fail at its end.
        """
        # The fingerprint and the samples: all names are checked now.
        written_at_end = (fingerprint_path(path), samples_path(path))
        _check_name(path)
        for other in written_at_end:
            _check_name(other)
            # The name that the file has while it is written.
            _check_name(files.part_path(other))
        for other in written_at_end:
            if os.path.lexists(other):
                raise _Exists(other)
        self.path = path
        # False until the first result: what comes before is in ``_held``, and not in the file.
        self.kept = False
        self._file = _create(path)
        self._held: list[bytes] = []

    def write(self, entries: Iterable[JournalEntry]) -> None:
        """Append these entries; the first that is a result also writes all that was held back.
        Raises ``CannotWrite``.
        """
        with self._raising():
            for entry in entries:
                encoded = results.encode_entry(entry)
                if self.kept:
                    self._file.write(encoded)
                    continue
                # ``kept`` is False: nothing is in the file yet. Header and plan alone are no
                # result. The first other entry is: now all is kept.
                self._held.append(encoded)
                if not isinstance(entry, _PLAN):
                    self.keep()

    def append(self, entries: Iterable[JournalEntry]) -> None:
        """Append these entries, and write everything to the disk. Raises ``UsageError``."""
        self.write(map(redacted, entries))
        self.sync()

    def keep(self) -> None:
        """Write what was held back, and hold back nothing further. Raises ``CannotWrite``."""
        self.kept = True
        with self._raising():
            self._file.writelines(self._held)
        self._held.clear()

    def sync(self) -> None:
        """Write everything to the disk. A file that was removed meanwhile is made again, with all
        its lines.

        Raises ``UsageError``, also if another file has the name now.
        """
        with self._raising():
            self._file.flush()
            # ``_is_at``: the file at this path still is the open one.
            if not _is_at(self._file, self.path):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                # The removed file is still open, so what it holds can be copied.
                gone, self._file = self._file, _create(self.path)
                with gone:
                    gone.seek(0)
                    shutil.copyfileobj(gone, self._file)
                self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file, and remove it unless it is to be kept. A second call does nothing."""
        if not self.kept and not self._file.closed:
            self.discard()
        with self._raising():
            self._file.close()

    def discard(self) -> None:
        """Close the file and remove it: nothing was measured, or the other files of the run have
        it all. If somebody has put another file in its place, that stays.
        """
        self.kept = False
        is_ours = not self._file.closed and _is_at(self._file, self.path)
        with contextlib.suppress(OSError):
            self._file.close()  # before the removal: Windows removes no open file
        if is_ours:
            self.path.unlink(missing_ok=True)

    def _raising(self) -> AbstractContextManager[None]:
        return raising_cannot_write(self.path, "; what was measured before is kept")


def fingerprint_path(journal: Path) -> Path:
    """The path of the fingerprint that this journal becomes."""
    return journal.with_suffix(".json")


def samples_path(journal: Path) -> Path:
    """The path of the compressed raw samples of this journal."""
    return journal.with_suffix(".samples.jsonl.gz")


def _check_name(path: Path) -> None:
    """Raise ``UsageError`` if no file can have this name, such as one that is too long, or if
    something else than a file has it. A file that is there is no error here.
    """
    with raising_cannot_write(path):
        try:
            mode = os.stat(path).st_mode
        except FileNotFoundError:
            return
    if not stat.S_ISREG(mode):
        kind = "folder" if stat.S_ISDIR(mode) else "special file"
        raise CannotWrite(f"{path}: is a {kind}, not a file")


def _create(path: Path) -> io.BufferedRandom:
    """A new file at this path, open for writing and reading. Raises ``UsageError`` if there is one,
    so that two runs never write to the same file.
    """
    with raising_cannot_write(path):
        try:
            return open(path, "x+b")
        except FileExistsError:
            raise _Exists(path) from None


def _is_at(file: io.BufferedRandom, path: Path) -> bool:
    """Whether the open file has this path now: somebody may have removed or replaced it."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        return False


@dataclass(frozen=True, repr=False)
class Outcome(Shown):
    """A finished run: the fingerprint, its path, and the path of its raw samples
    (``.samples.jsonl.gz``).

    ``second``: the run under the second interpreter, if two were given.
    """

    fingerprint: Fingerprint
    path: Path
    samples: Path
    second: Outcome | None = None

    @property
    def measured(self) -> bool:
        """Whether any case was measured, with any of the interpreters."""
        statuses = [record.status for record in self.fingerprint.records]
        statuses += [peers.status for peers in self.fingerprint.contention]
        if any(status not in _NOT_MEASURED for status in statuses):
            return True
        return self.second is not None and self.second.measured

    def without_figure(self, stacks: Iterable[str]) -> dict[str, Why]:
        """The stacks among these of which the run has no case with a value, each with the reason.
        A run that had to measure them (``--require``) has failed then.
        """
        # ``VALUED``: the statuses of a case that has values.
        have = set()
        for record in self.fingerprint.records:
            if record.status in results.VALUED:
                have.add(record.stack)
        reasons = {}
        for name in stacks:
            if name not in have:
                reasons[name] = missing_stack(self.fingerprint, name).why
        return reasons


def folder_name(text: str) -> str:
    """The text as the name of a folder: of letters, digits, dots and hyphens, neither hidden nor
    empty.
    """
    return re.sub(r"[^A-Za-z0-9.-]", "-", text).strip(".-") or "node"


def reserve_journals(
    out: Path | None, sides: Sequence[str] = ("",), *, per_node: bool = False
) -> list[Journal]:
    """Create the journals of a run before it measures, so that their names are its own: one for
    each side of a comparison. A side is the name of a subfolder of the output; '' for none.

    ``out``: the file of figures (.json) to write beside the journal, or a folder (None:
    ``reports/local``), where the name is the time in UTC. ``per_node``: the run is on one of
    several machines (nodes) that share the folder ``out``, so this one has its own folder in it,
    and takes the next free name there. Raises ``UsageError``.
    """
    if out is not None and out.suffix == ".json":
        return _reserve(out.with_suffix(".jsonl"), sides)
    # A folder that does not exist yet is made; its name has no suffix.
    if out is not None and not out.is_dir():
        if out.exists():
            raise _Exists(out)
        if out.suffix:
            raise UsageError(f"{out}: neither a folder nor a name that ends in .json")
    time = datetime.now(UTC).strftime(_TIME)
    if out is None or not per_node:
        return _reserve((out or DEFAULT_FOLDER) / f"{time}.jsonl", sides)
    # The name of this node, by Slurm if it started the run.
    host = socket.gethostname().partition(".")[0]
    folder = out / folder_name(os.environ.get("SLURMD_NODENAME") or host)
    name = time
    number = 1
    while True:
        # Another task on this node may have begun in the same second and taken the name.
        with contextlib.suppress(_Exists):
            return _reserve(folder / f"{name}.jsonl", sides)
        number += 1
        name = f"{time}-{number}"


def _reserve(path: Path, sides: Sequence[str]) -> list[Journal]:
    """A new journal with this path for each side of a comparison, in the side's folder. If one of
    them cannot be made, those made before are removed.
    """
    with contextlib.ExitStack() as at_error:
        journals = []
        for side in sides:
            folder = path.parent / side
            with raising_cannot_write(folder):
                files.make_folder(folder)
            journal = Journal(folder / path.name)
            journals.append(journal)
            # If a later one fails, this one is closed, which removes it as it is empty.
            at_error.callback(journal.close)
        at_error.pop_all()  # no error: the journals stay open
    return journals


def write_files(journals: Sequence[Journal]) -> Outcome:
    """End a run: compute and write its figures (the fingerprint) and its compressed raw samples for
    each journal, then remove the journals. Raises ``UsageError``.
    """
    outcomes = [_write(journal) for journal in journals]
    # Only now, so that after an error all samples are still there.
    for journal in journals:
        journal.discard()
    first, *others = outcomes
    return replace(first, second=others[0]) if others else first


def write_entries(entries: Iterable[JournalEntry], out: Path | None) -> Outcome:
    """Write the files of a run that was measured elsewhere, such as in a browser page, from the
    entries of its journal; without ``out`` in ``reports/local``. Raises ``UsageError``.
    """
    (journal,) = reserve_journals(out)
    try:
        journal.write(entries)
        return write_files([journal])
    finally:
        journal.close()


def _write(journal: Journal) -> Outcome:
    """Compute the figures of a journal, and write them (the fingerprint) and its compressed
    samples beside it. The journal itself stays.
    """
    # Imported after the measurement: a run begins sooner without it.
    from overhead.loading.reduce import reduce_journal

    # All entries must be in the file before the figures are computed from it.
    journal.keep()
    journal.sync()
    source = journal.path
    fingerprint = reduce_journal(source)
    path, samples = fingerprint_path(source), samples_path(source)
    # They did not exist when the run began, but somebody may have made one meanwhile.
    for other in (path, samples):
        if os.path.lexists(other):
            raise _Exists(other, f". Everything measured is in {source}")
    with raising_cannot_write(path, f"; everything measured is in {source}"):
        files.write_fingerprint(path, fingerprint)
        with (
            files.replacing(samples) as target,
            open(source, "rb") as raw,
            # With the empty name, the packed file does not hold the name of this one.
            gzip.GzipFile("", "wb", fileobj=target) as packed,
        ):
            shutil.copyfileobj(raw, packed)
    return Outcome(fingerprint, path, samples)
