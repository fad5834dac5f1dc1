"""Files and folders as named on the command line: a bad file named alone is an error, among others it is skipped."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from overhead.reading.format import plain
from overhead.reduce import load
from overhead.results import BadFile, Fingerprint, Machine


@dataclass(frozen=True)
class Loaded:
    """A run and the file that it came from; ``argument`` is the place among the paths that named it."""

    path: Path
    fingerprint: Fingerprint
    argument: int = 0


@dataclass(frozen=True)
class Skipped:
    """A file that could not be used, and why, in one line without the path."""

    path: Path
    reason: str


def collect(paths: Sequence[Path]) -> tuple[list[Loaded], list[Skipped]]:
    """Every fingerprint and journal of these files and folders, in order.

    Raises ``BadFile`` where a file named alone is bad, or where nothing at all could be loaded.
    """
    found = list(each(paths))
    return [one for one in found if isinstance(one, Loaded)], [one for one in found if isinstance(one, Skipped)]


def each(paths: Sequence[Path]) -> Iterator[Loaded | Skipped]:
    """The same one by one, so that a caller need not hold them all.

    Of two files that give one machine id to different machines the first counts, the other is skipped.
    """
    alone = len(paths) == 1 and not paths[0].is_dir()
    machines: dict[str, tuple[Machine, Path]] = {}
    skipped: list[Skipped] = []
    for argument, path in _files(paths):
        try:
            one = Loaded(path, load(path), argument)
        except BadFile as error:
            if alone:
                raise
            skipped.append(Skipped(path, str(error).removeprefix(f"{path}: ")))
            yield skipped[-1]
            continue
        own = one.fingerprint.machine
        first, holder = machines.setdefault(own.id, (own, path))
        if _description(first) != _description(own):
            reason = f"claims the machine id {own.id} of {holder.name}, and describes another machine"
            yield Skipped(path, reason)
        else:
            yield one
    if not machines:
        bad = f" ({len(skipped)} that cannot be read; the first: {skipped[0].reason})" if skipped else ""
        raise BadFile(f"{', '.join(map(str, paths)) or 'no path'}: no fingerprint or journal here{bad}")


def tell(skipped: Iterable[Skipped]) -> None:
    """List what was skipped on standard error."""
    for one in skipped:
        print(f"overhead: skipped {plain(one.path.name, 80)}: {plain(one.reason, 300)}", file=sys.stderr)


def _description(machine: Machine) -> tuple[str, int, int, int]:
    """What the id hashes, as far as the file tells it: a GPU's name may change with the list that named it."""
    return machine.cpu, machine.cores, machine.memory_gib, sum(not gpu.software for gpu in machine.gpus)


def _files(paths: Iterable[Path]) -> Iterator[tuple[int, Path]]:
    """Files as named; of a folder its fingerprints, and the journals that have not become one."""
    for argument, path in enumerate(paths):
        if not path.is_dir():
            yield argument, path
            continue
        done = sorted(path.glob("*.json"))
        stems = {p.stem for p in done}
        left = [p for p in sorted(path.glob("*.jsonl")) if p.stem not in stems]
        yield from ((argument, p) for p in (*done, *left))
