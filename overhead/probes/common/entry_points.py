"""The entry points of other packages, and the trial of an import in a child process before this
process does it.

The trial finds a package or a plugin that raises, ends the process, crashes or hangs while it is
imported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint

import msgspec

from overhead.child import ChildEnded, ChildLimits, ChildProcess
from overhead.results import MissingStack, Why, because

GROUP = "overhead.probes"
IMPORT_S = 30.0
"""How long the import of a package may take, s. Chosen, not measured: a slower package is left out
of the run, and a package that hangs delays the start by so long.
"""
_MEMORY_BYTES = 8 << 30
"""A child process that uses more is ended, so that a faulty package cannot fill the machine's
memory. Chosen, not measured.
"""
_TRIALS_AT_ONCE = 8
"""Packages that are tried at the same time, each in a process of its own. Chosen, not measured."""
_decode = msgspec.json.Decoder(Why).decode


def text_of(entry: EntryPoint) -> str:
    """The entry point as its package declares it: ``name = module``."""
    return f"{entry.name} = {entry.value}"


def package_of(entry: EntryPoint) -> str:
    """The name of the package that declares the entry point."""
    return entry.dist.name if entry.dist is not None else entry.value.partition(":")[0]


def missing_record(entry: EntryPoint, reason: Why) -> MissingStack:
    """The entry in a results file for a package with a stack, declared by an entry point, that
    cannot be used for this reason.

    The package names its stack only when it is imported, which failed. So the record has the name
    of the entry point, changed to what a stack's name may be: lower case, digits and hyphens, with
    a letter first, at most 32 characters.
    """
    # The characters that are not allowed become hyphens, then what may not stand at the ends goes.
    words = re.sub(r"[^a-z0-9]+", "-", entry.name.lower())
    name = words.strip("-0123456789")[:32]
    unusable = because("package-unusable", why=reason, package=package_of(entry))
    # Nothing is left of a name without a letter.
    return MissingStack(stack=name or "package", reason=unusable)


def import_failures(entries: Sequence[EntryPoint]) -> list[Why]:
    """For each entry point, why it cannot be imported in a child process; '' if it can."""
    names = [entry.name for entry in entries]
    modules = [entry.value for entry in entries]
    with ThreadPoolExecutor(_TRIALS_AT_ONCE) as pool:
        return list(pool.map(import_failure, names, modules))


def import_failure(*arguments: str) -> Why:
    """Why a child process cannot import an entry point (two arguments: its name and its module) or
    a plugin (one argument: its path); '' if it can.

    A child process tries it, because an import may also crash, end the process or hang. Then the
    answer says how the child ended. The child runs the module ``import_trial``.
    """
    # Longest time, s, and most memory; a child process that exceeds one is ended.
    limits = ChildLimits(IMPORT_S, _MEMORY_BYTES)
    try:
        with ChildProcess(f"{__package__}.import_trial", arguments, _decode, limits) as child:
            return child.receive()
    except ChildEnded as ended:
        return because("ended-while-imported", why=ended.reason)
