"""Files and folders as named on the command line: a bad file named alone is an error, among others it is skipped."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from overhead.reading.format import plain
from overhead.reduce import load
from overhead.results import BadFile, Fingerprint


@dataclass(frozen=True)
class Loaded:
    """A run and the file that it came from."""

    path: Path
    fingerprint: Fingerprint


@dataclass(frozen=True)
class Skipped:
    """A file that could not be used, and why, in one line without the path."""

    path: Path
    reason: str


def collect(paths: Sequence[Path]) -> tuple[list[Loaded], list[Skipped]]:
    """Every fingerprint and journal of these files and folders, in order.

    Raises ``BadFile`` where a file named alone is bad, or where nothing at all could be loaded.
    """
    alone = len(paths) == 1 and not paths[0].is_dir()
    found: list[Loaded] = []
    skipped: list[Skipped] = []
    for path in _files(paths):
        try:
            found.append(Loaded(path, load(path)))
        except BadFile as error:
            if alone:
                raise
            skipped.append(Skipped(path, str(error).removeprefix(f"{path}: ")))
    if not found:
        bad = f" ({len(skipped)} that cannot be read; the first: {skipped[0].reason})" if skipped else ""
        raise BadFile(f"{', '.join(map(str, paths)) or 'no path'}: no fingerprint or journal here{bad}")
    return found, skipped


def tell(skipped: Iterable[Skipped]) -> None:
    """List what was skipped on standard error."""
    for one in skipped:
        print(f"overhead: skipped {plain(one.path.name, 80)}: {plain(one.reason, 300)}", file=sys.stderr)


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """Files as named; of a folder its fingerprints, and the journals that have not become one."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        done = sorted(path.glob("*.json"))
        yield from done
        stems = {p.stem for p in done}
        yield from (p for p in sorted(path.glob("*.jsonl")) if p.stem not in stems)
