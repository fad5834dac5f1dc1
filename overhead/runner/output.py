"""The files of a run: their names are reserved before anything is measured, and they are written at the end."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import os
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from overhead import results
from overhead.errors import CannotWrite, UsageError
from overhead.loading import files
from overhead.loading.reduce import reduce_journal
from overhead.locks import try_lock
from overhead.reading.missing_values import missing_stack
from overhead.results import Fingerprint, JournalLine
from overhead.runner.journal import Journal, NameTaken, fingerprint_path, samples_path

SIDES: tuple[Literal["base", "new"], Literal["base", "new"]] = ("base", "new")
"""The sides of a comparison. Each has a folder of this name."""
DEFAULT_FOLDER = Path("reports/local")
_TIME = "%Y-%m-%dT%H%M%SZ"
_TIME_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d{6}Z\.jsonl")
_NOT_MEASURED = ("failed", "unavailable", "unverified")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A finished run: the fingerprint, its path, and the path of its raw samples.

    ``second``: the run under the second interpreter, if two were given.
    """

    fingerprint: Fingerprint
    path: Path
    samples: Path
    second: Outcome | None = None

    @property
    def measured(self) -> bool:
        """Whether any case was measured, under any of the interpreters."""
        found = any(r.status not in _NOT_MEASURED for r in self.fingerprint.records)
        return found or (self.second is not None and self.second.measured)

    def without_figure(self, stacks: Iterable[str]) -> dict[str, str]:
        """For each of these stacks without a figure with a value, the reason."""
        have = {r.stack for r in self.fingerprint.records if r.status in results.VALUED}
        return {name: missing_stack(self.fingerprint, name).text for name in stacks if name not in have}


def reserve(out: Path | None, sides: Sequence[str] = ("",), now: Callable[[], datetime] | None = None) -> list[Journal]:
    """The new journals of a run, one for each side. A side is a folder beside the output, or empty for no such folder.

    ``out``: the fingerprint to write, or a folder (None: ``reports/local``), where the name comes from the time. If
    another run of the same second has that name, it is that of the next free second. Raises ``UsageError``.
    """
    if out is not None and out.suffix == ".json":
        return _reserve(out.with_suffix(".jsonl"), sides)
    if out is not None and not out.is_dir():
        if out.exists():
            raise UsageError(f"{out}: exists; measured results are not overwritten")
        if out.suffix:
            raise UsageError(f"{out}: neither a folder nor a name that ends in .json")
    folder, time = out or DEFAULT_FOLDER, (now or _now)()
    _sweep_empty(folder, sides)
    while True:
        try:
            return _reserve(folder / f"{time.strftime(_TIME)}.jsonl", sides)
        except NameTaken:
            time += timedelta(seconds=1)


def _now() -> datetime:
    return datetime.now(UTC)


def _reserve(path: Path, sides: Sequence[str]) -> list[Journal]:
    """The journal of each side; if one of them cannot be had, none is changed."""
    with contextlib.ExitStack() as stack:
        journals = []
        for side in sides:
            own = path.parent / side / path.name
            try:
                files.make_folder(own.parent)
            except OSError as error:
                raise CannotWrite(f"{own.parent}: {error.strerror or error}") from None
            journals.append(Journal.reserve(own))
            stack.callback(journals[-1].close)
        stack.pop_all()
    return journals


def _sweep_empty(folder: Path, sides: Sequence[str]) -> None:
    """Remove the journals of runs that were killed before they measured, if no run has them locked."""
    for path in (path for side in sides for path in (folder / side).glob("*.jsonl")):
        with contextlib.suppress(OSError):
            if _TIME_NAME.fullmatch(path.name) and not path.stat().st_size:
                with open(path, "r+b") as file:
                    unused = try_lock(file.fileno()) and not path.stat().st_size
                if unused:  # Windows removes no open file
                    path.unlink()


def finish(journals: Sequence[Journal]) -> Outcome:
    """Reduce each journal to a fingerprint, compress it to the file of raw samples, and remove it.

    No journal is removed before the files of all are on the disk.
    """
    outcomes = [_write(journal) for journal in journals]
    for journal in journals:
        journal.discard()
    first, *others = outcomes
    return dataclasses.replace(first, second=others[0]) if others else first


def write_lines(lines: Iterable[JournalLine], out: Path | None) -> Outcome:
    """Write the files of a run that was measured elsewhere. Raises ``UsageError``."""
    (journal,) = reserve(out)
    try:
        journal.write(lines)
        return finish([journal])
    finally:
        journal.close()


def _write(journal: Journal) -> Outcome:
    journal.keep()
    journal.sync()
    source = journal.path
    fingerprint = reduce_journal(source)
    path, samples = fingerprint_path(source), samples_path(source)
    for other in (path, samples):
        if os.path.lexists(other):
            raise UsageError(
                f"{other}: exists; measured results are not overwritten. Everything measured is in {source}"
            )
    try:
        files.write_fingerprint(path, fingerprint)
        with (
            files.replacing(samples) as target,
            open(source, "rb") as raw,
            gzip.GzipFile("", "wb", fileobj=target) as packed,
        ):
            shutil.copyfileobj(raw, packed)
    except OSError as error:
        raise CannotWrite(f"{path}: {error.strerror or error}; everything measured is in {source}") from None
    return Outcome(fingerprint, path, samples)
