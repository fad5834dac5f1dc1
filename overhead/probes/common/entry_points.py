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
"""How long the import of a package may take, s."""
_MEMORY_BYTES = 8 << 30
_TRIALS_AT_ONCE = 8
_decode = msgspec.json.Decoder(Why).decode


def text_of(entry: EntryPoint) -> str:
    """The entry point as its package declares it: ``name = module``."""
    return f"{entry.name} = {entry.value}"


def package_of(entry: EntryPoint) -> str:
    """The name of the package that declares the entry point."""
    return entry.dist.name if entry.dist is not None else entry.value.partition(":")[0]


def missing_record(entry: EntryPoint, reason: Why) -> MissingStack:
    """The entry in a results file for a package that cannot be used for this reason."""
    name = re.sub(r"[^a-z0-9]+", "-", entry.name.lower()).strip("-0123456789")[:32] or "package"
    return MissingStack(
        stack=name, reason=because("package-unusable", why=reason, package=package_of(entry))
    )


def import_failures(entries: Sequence[EntryPoint]) -> list[Why]:
    """For each entry point, why it cannot be imported in a child process; '' if it can."""
    with ThreadPoolExecutor(_TRIALS_AT_ONCE) as pool:
        return list(pool.map(lambda entry: import_failure(entry.name, entry.value), entries))


def import_failure(*arguments: str) -> Why:
    """Why a child process cannot import an entry point (name and value) or a plugin (path); '' if
    it can.
    """
    limits = ChildLimits(IMPORT_S, _MEMORY_BYTES)
    try:
        with ChildProcess(f"{__package__}.import_trial", arguments, _decode, limits) as child:
            return child.receive()
    except ChildEnded as ended:
        return because("ended-while-imported", why=ended.reason)
