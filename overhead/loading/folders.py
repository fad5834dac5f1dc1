"""Load the files and folders that a command line names. A bad file is skipped, but is an error if
named itself.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from overhead.errors import BadFile
from overhead.loading.files import files_in_folder
from overhead.loading.reduce import load_file
from overhead.results import Fingerprint, Machine, Why, because


@dataclass(frozen=True)
class Loaded:
    """A run and its file. ``argument``: index of the command-line path (a file or its folder) that
    it came from.
    """

    path: Path
    fingerprint: Fingerprint
    argument: int = 0


@dataclass(frozen=True)
class Skipped:
    """A file that could not be used, and the reason in one line without the path."""

    path: Path
    reason: Why


def load_paths(paths: Sequence[Path]) -> tuple[list[Loaded], list[Skipped]]:
    """All fingerprints and journals of these files and folders in order, and the files that were
    skipped.

    If two files have the same machine id but describe different machines, the second one is
    skipped. Raises ``BadFile`` if a single named file is bad, or if nothing could be loaded.
    """
    alone = len(paths) == 1 and not os.path.isdir(paths[0])
    machines: dict[str, tuple[Machine, Path]] = {}
    loaded: list[Loaded] = []
    skipped: list[Skipped] = []
    files = [files_in_folder(path) if os.path.isdir(path) else [path] for path in paths]
    for argument, path in ((argument, path) for argument, own in enumerate(files) for path in own):
        try:
            found = load_file(path)
        except BadFile as error:
            if alone:
                raise
            skipped.append(Skipped(path, error.fault))
            continue
        own = found.machine
        first, holder = machines.setdefault(own.id, (own, path))
        if _description(first) == _description(own):
            loaded.append(Loaded(path, found, argument))
        else:
            skipped.append(
                Skipped(path, because("other-machine-of-same-id", id=own.id, holder=holder.name))
            )
    if not loaded:
        where = ", ".join(map(str, paths)) or "no path"
        if not skipped:
            inner = next((own for path in paths for own in _folders_with_runs(path)), None)
            why = (
                because("runs-in-inner-folders", folder=str(inner))
                if inner
                else because("no-run-here")
            )
            raise BadFile(why, where)
        unread = because("no-run-that-can-be-read", skipped=len(skipped), why=skipped[0].reason)
        raise BadFile(unread, where)
    return loaded, skipped


def _folders_with_runs(path: Path) -> list[Path]:
    """The folders inside this one that hold runs, such as one for each node. Their first file
    decides.
    """
    if not path.is_dir():
        return []
    inner = [entry for entry in sorted(path.iterdir()) if entry.is_dir()]
    return [folder for folder in inner if _is_run(files_in_folder(folder)[:1])]


def _is_run(files: Sequence[Path]) -> bool:
    try:
        return any(load_file(file) is not None for file in files)
    except BadFile:
        return False


def _description(machine: Machine) -> tuple[str, int, int, int]:
    """The values that identify the machine. GPU names are left out, because tools may name one GPU
    differently.
    """
    return (
        machine.cpu,
        machine.cores,
        machine.memory_gib,
        sum(not gpu.software for gpu in machine.gpus),
    )
