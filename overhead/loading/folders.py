"""Load the files and folders that a command line names. A bad file is skipped, but is an error if named itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from overhead.errors import BadFile
from overhead.loading.files import in_folder
from overhead.loading.reduce import load_file
from overhead.reading.format import plain
from overhead.results import Fingerprint, Machine

T = TypeVar("T")


@dataclass(frozen=True)
class Loaded:
    """A run and its file. ``argument``: index of the command-line path (a file or its folder) that it came from."""

    path: Path
    fingerprint: Fingerprint
    argument: int = 0


@dataclass(frozen=True)
class Skipped:
    """A file that could not be used, and the reason in one line without the path."""

    path: Path
    reason: str


@dataclass(frozen=True)
class Used(Generic[T]):
    """The result of a function applied to a run, with the run's file and machine."""

    path: Path
    argument: int
    machine: Machine
    result: T


def collect(paths: Sequence[Path]) -> tuple[list[Loaded], list[Skipped]]:
    """All fingerprints and journals of these files and folders in order, and the files that were skipped.

    Raises ``BadFile`` if a single named file is bad, or if nothing could be loaded.
    """
    found = list(each(paths, _unchanged))
    loaded = [Loaded(one.path, one.result, one.argument) for one in found if isinstance(one, Used)]
    return loaded, [one for one in found if isinstance(one, Skipped)]


def each(paths: Sequence[Path], use: Callable[[Fingerprint], T]) -> Iterator[Used[T] | Skipped]:
    """Apply ``use`` to each run of these files and folders; only the results stay in memory.

    If two files have the same machine id but describe different machines, the second file is skipped. Raises
    ``BadFile`` like ``collect``.
    """
    alone = len(paths) == 1 and not os.path.isdir(paths[0])
    machines: dict[str, tuple[Machine, Path]] = {}
    bad: list[Skipped] = []
    for argument, path in files(paths):
        try:
            found = load_file(path)
        except BadFile as error:
            if alone:
                raise
            bad.append(Skipped(path, str(error).removeprefix(f"{path}: ")))
            yield bad[-1]
            continue
        own, result = found.machine, use(found)
        first, holder = machines.setdefault(own.id, (own, path))
        if _description(first) == _description(own):
            yield Used(path, argument, own, result)
        else:
            reason = f"claims the machine id {own.id} of {holder.name}, and describes another machine"
            yield Skipped(path, reason)
    if not machines:
        why = f" ({len(bad)} that cannot be read; the first: {bad[0].reason})" if bad else ""
        raise BadFile(f"{', '.join(map(str, paths)) or 'no path'}: no fingerprint or journal here{why}")


def _unchanged(found: Fingerprint) -> Fingerprint:
    return found


def report_skipped(skipped: Iterable[Skipped]) -> None:
    """List the skipped files on standard error."""
    for one in skipped:
        print(f"overhead: skipped {plain(one.path.name, 80)}: {plain(one.reason, 300)}", file=sys.stderr)


def _description(machine: Machine) -> tuple[str, int, int, int]:
    """The values that identify the machine. GPU names are left out, because tools may name one GPU differently."""
    return machine.cpu, machine.cores, machine.memory_gib, sum(not gpu.software for gpu in machine.gpus)


def files(paths: Iterable[Path]) -> list[tuple[int, Path]]:
    """The files to load, each with the index of its path in ``paths``. A folder stands for the files in it."""
    return [
        (argument, file)
        for argument, path in enumerate(paths)
        for file in (in_folder(path) if os.path.isdir(path) else [path])
    ]
