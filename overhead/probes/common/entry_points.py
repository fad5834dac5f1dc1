"""The entry points of other packages, and the trial of an import in a child process before this process imports it.

The trial finds a package or a plugin that raises, ends the process, crashes or hangs while it is imported. Such a
package is listed as unavailable, and everything else works.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint

import msgspec

from overhead.child import ChildEnded, ChildLimits, ChildProcess
from overhead.results import MissingStack

GROUP = "overhead.probes"
IMPORT_S = 30.0
"""How long the import of a package may take."""
_MEMORY_BYTES = 8 << 30
_TRIALS_AT_ONCE = 8
_decode = msgspec.json.Decoder(str).decode


def installed() -> list[EntryPoint]:
    """The entry points of all installed packages. None of them is imported."""
    return sorted(importlib.metadata.entry_points(group=GROUP), key=text_of)


def text_of(entry: EntryPoint) -> str:
    """The entry point as its package declares it, in one line."""
    return f"{entry.name} = {entry.value}"


def package_of(entry: EntryPoint) -> str:
    """The name of the package that declares the entry point."""
    return entry.dist.name if entry.dist is not None else entry.value.partition(":")[0]


def missing(entry: EntryPoint, reason: str) -> MissingStack:
    """The record of a package that cannot be used."""
    name = re.sub(r"[^a-z0-9]+", "-", entry.name.lower()).strip("-0123456789")[:32] or "package"
    return MissingStack(stack=name, reason=f"package {package_of(entry)}: {reason}"[:1000])


def tried(entries: Sequence[EntryPoint]) -> list[str]:
    """For each entry point why it cannot be imported; '' if it can. Takes at most about ``IMPORT_S``."""
    with ThreadPoolExecutor(_TRIALS_AT_ONCE) as pool:
        return list(pool.map(lambda entry: trial(entry.name, entry.value), entries))


def trial(*arguments: str) -> str:
    """Why a child process could not import what the arguments name; '' if it could. See ``import_trial``."""
    limits = ChildLimits(IMPORT_S, _MEMORY_BYTES)
    try:
        with ChildProcess(f"{__package__}.import_trial", arguments, _decode, limits) as child:
            return child.receive()
    except ChildEnded as ended:
        return f"while it was imported: {ended}"
