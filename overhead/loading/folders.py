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
    """All runs in these files and folders, in order, and the files that could not be used.

    If two files have the same machine id but describe different machines, the second one is
    skipped: their figures would be shown as those of one machine. Raises ``BadFile`` if a single
    named file is bad, or if nothing could be loaded.
    """
    # ``argument``: the place of the path, among those given, that a run comes from.
    is_one_file = len(paths) == 1 and not os.path.isdir(paths[0])
    first_of_machine: dict[str, Loaded] = {}
    loaded: list[Loaded] = []
    skipped: list[Skipped] = []
    for argument, named in enumerate(paths):
        files = files_in_folder(named) if os.path.isdir(named) else [named]
        for path in files:
            try:
                run = Loaded(path, load_file(path), argument)
            except BadFile as error:
                if is_one_file:
                    raise
                # ``fault``: what is wrong with the file, without its name.
                skipped.append(Skipped(path, error.fault))
                continue
            # The first run with an id describes its machine for all others.
            machine = run.fingerprint.machine
            first = first_of_machine.setdefault(machine.id, run)
            # ``_description``: the processor, its cores, the memory, and how many hardware GPUs
            # there are.
            if _description(first.fingerprint.machine) == _description(machine):
                loaded.append(run)
                continue
            why = because("other-machine-of-same-id", id=machine.id, holder=first.path.name)
            skipped.append(Skipped(path, why))
    if not loaded:
        where = ", ".join(map(str, paths)) or "no path"
        raise BadFile(_why_nothing_loaded(paths, skipped), where)
    return loaded, skipped


def _why_nothing_loaded(paths: Sequence[Path], skipped: Sequence[Skipped]) -> Why:
    """The reason in the error of paths that give no run: all of their files are bad, the runs are
    in folders further inside (only the folder itself is searched), or there are none.
    """
    if skipped:
        return because("no-run-that-can-be-read", skipped=len(skipped), why=skipped[0].reason)
    for path in paths:
        inner = _folders_with_runs(path)
        if inner:
            return because("runs-in-inner-folders", folder=str(inner[0]))
    return because("no-run-here")


def _folders_with_runs(path: Path) -> list[Path]:
    """The folders inside this one that hold runs, such as one for each node of a cluster, to name
    them in an error. Of each only the first file is read, as that may take long.
    """
    if not path.is_dir():
        return []
    inner = [entry for entry in sorted(path.iterdir()) if entry.is_dir()]
    # A folder without files of runs gives an empty list, which is no run.
    return [folder for folder in inner if _is_run(files_in_folder(folder)[:1])]


def _is_run(files: Sequence[Path]) -> bool:
    """Whether the first of these files is a run. ``files``: at most one."""
    try:
        return any(load_file(file) is not None for file in files)
    except BadFile:
        return False


def _description(machine: Machine) -> tuple[str, int, int, int]:
    """The values that identify the machine. GPU names are left out, because tools may name one GPU
    differently.
    """
    hardware_gpus = [gpu for gpu in machine.gpus if not gpu.software]
    return machine.cpu, machine.cores, machine.memory_gib, len(hardware_gpus)
