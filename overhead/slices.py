"""The features of the suite, each in one folder from its command to its page.

A feature registers its commands, sections, stacks and so on itself: the core imports a module of
the right name from each feature's folder, for example ``overhead/fleet/commands.py``.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from types import ModuleType

CORE_FEATURES = ("contention",)
"""Features that are part of the core: the file format has their records and their profiles."""
SLICES = ("claims", "decode", "explaining", "fleet", "timing", "traces")
"""Features that the core does not know. One whose folder is not there is left out."""


@functools.cache
def of_features(kind: str) -> tuple[ModuleType, ...]:
    """Import and return the modules with the name ``kind``, such as ``stacks`` or ``sections``, of
    all features that have one. A feature is a folder of the package, such as ``overhead/fleet``.

    What a feature offers registers itself when that module is imported.
    """
    modules = []
    for name in _features():
        if importlib.util.find_spec(f"overhead.{name}.{kind}"):
            modules.append(importlib.import_module(f"overhead.{name}.{kind}"))
    return tuple(modules)


@functools.cache
def words_of_features(kind: str) -> tuple[ModuleType, ...]:
    """Import and return the modules with the name ``kind``, such as ``findings``, in which features
    have their sentences: ``overhead.words.contention.findings`` is that of ``contention``.

    ``overhead.words.NAME`` may also be one module, which then has the sentences of every kind.
    """
    modules = []
    for name in _features():
        words = importlib.util.find_spec(f"overhead.words.{name}")
        if words is None:
            continue
        is_folder = words.submodule_search_locations is not None
        module = f"overhead.words.{name}.{kind}" if is_folder else f"overhead.words.{name}"
        if importlib.util.find_spec(module):
            modules.append(importlib.import_module(module))
    return tuple(modules)


def _features() -> list[str]:
    """The features whose folders are there, in alphabetic order.

    Commands stand in the help in this order, and what features register keeps it.
    """
    slices_here = [name for name in SLICES if importlib.util.find_spec(f"overhead.{name}")]
    return sorted([*CORE_FEATURES, *slices_here])
