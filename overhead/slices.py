"""The slices: features that the core does not know, each in one folder from its command to its
page.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from types import ModuleType

SLICES = ("claims", "contention", "decode", "explaining", "fleet", "timing", "traces")
"""Folders of the package. One that is not there is left out."""


@functools.cache
def of_slices(kind: str) -> tuple[ModuleType, ...]:
    """Import and return the module ``kind`` of each slice that has one, such as ``stacks`` or
    ``sections``.

    What a slice offers registers itself when that module is imported.
    """
    return tuple(
        importlib.import_module(f"overhead.{name}.{kind}")
        for name in SLICES
        if importlib.util.find_spec(f"overhead.{name}")
        and importlib.util.find_spec(f"overhead.{name}.{kind}")
    )


@functools.cache
def words_of_slices(kind: str) -> tuple[ModuleType, ...]:
    """Import and return the module ``kind`` of the words of each slice that has one, such as
    ``findings``.
    """
    found = []
    for name in SLICES:
        if not importlib.util.find_spec(f"overhead.{name}"):
            continue
        words = importlib.util.find_spec(f"overhead.words.{name}")
        in_folder = words is not None and words.submodule_search_locations is not None
        if in_folder and importlib.util.find_spec(f"overhead.words.{name}.{kind}"):
            found.append(importlib.import_module(f"overhead.words.{name}.{kind}"))
    return tuple(found)
