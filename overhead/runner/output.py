"""The files of a run: their names are reserved before anything is measured, and they are written at the end."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import os
import shutil
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from overhead import results
from overhead.errors import CannotWrite, UsageError
from overhead.loading import files
from overhead.loading.reduce import reduce_journal
from overhead.reading.missing_values import missing_stack
from overhead.results import Fingerprint, JournalLine
from overhead.runner.journal import Journal, fingerprint_path, samples_path

SIDES: tuple[Literal["base", "new"], Literal["base", "new"]] = ("base", "new")
"""The sides of a comparison. Each has a folder of this name."""
DEFAULT_FOLDER = Path("reports/local")
_TIME = "%Y-%m-%dT%H%M%SZ"
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


def reserve(out: Path | None, sides: Sequence[str] = ("",)) -> list[Journal]:
    """The new journals of a run, one for each side. A side is a folder beside the output, or empty for no such folder.

    ``out``: the fingerprint to write, or a folder (None: ``reports/local``), where the name is the time in UTC. Raises
    ``UsageError``.
    """
    if out is not None and out.suffix == ".json":
        return _reserve(out.with_suffix(".jsonl"), sides)
    if out is not None and not out.is_dir():
        if out.exists():
            raise UsageError(f"{out}: exists; measured results are not overwritten")
        if out.suffix:
            raise UsageError(f"{out}: neither a folder nor a name that ends in .json")
    return _reserve((out or DEFAULT_FOLDER) / f"{datetime.now(UTC).strftime(_TIME)}.jsonl", sides)


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
            journals.append(Journal(own))
            stack.callback(journals[-1].close)
        stack.pop_all()
    return journals


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
