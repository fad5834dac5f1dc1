"""The registry of stacks. Each is a class with ``@register``, in a file or a folder of its family here; others are in
slices, in other packages and in ``--plugin`` files.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Container, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from overhead.errors import BadPlugin, one_line
from overhead.fields import is_utf8
from overhead.probes.base import Probe
from overhead.probes.common import entry_points
from overhead.probes.common.answers import environments_of, space_of, targets_of
from overhead.registry import Registry, owner_of
from overhead.results import MissingStack
from overhead.workloads import WORKLOADS

__all__ = [
    "allow_entry_points",
    "environments_of",
    "load_entry_point",
    "load_plugin",
    "register",
    "registry",
    "space_of",
    "targets_of",
    "unavailable_packages",
    "unload_plugin",
    "usable_entry_points",
]
_registry: Registry[Probe] = Registry(
    "stack",
    __name__,
    skip=frozenset({"arms", "base", "common", "held_chain", "in_order", "kernels", "workload_chain"}),
    in_slices="stacks",
)
_REGISTRIES: tuple[Registry[Any], ...] = (_registry, WORKLOADS)
_plugins: set[str] = set()
_unavailable: list[MissingStack] = []
_usable: list[str] = []
_allowed: Container[str] | None = None


def register(cls: type[Probe]) -> type[Probe]:
    """Class decorator: register the probe by its name. Raises ``UsageError`` if another probe has the name."""
    cls.check_attributes()
    _registry.add(cls.name, cls(), owner_of(cls))
    return cls


def registry() -> dict[str, Probe]:
    """All stacks, sorted by name: the built-in ones, and those of installed packages that can be imported."""
    if _registry.load():
        entries = entry_points.installed()
        if _allowed is not None:
            entries = [entry for entry in entries if entry_points.text_of(entry) in _allowed]
        reasons = entry_points.tried(entries) if _allowed is None else [""] * len(entries)
        for entry, reason in zip(entries, reasons, strict=True):
            if reason := reason or load_entry_point(entry):
                _unavailable.append(entry_points.missing(entry, reason))
            else:
                _usable.append(entry_points.text_of(entry))
    return _registry.items()


def unavailable_packages() -> list[MissingStack]:
    """The installed packages with stacks that cannot be used, each with the reason."""
    registry()
    return list(_unavailable)


def usable_entry_points() -> list[str]:
    """The entry points that were loaded, as text, for ``allow_entry_points`` in a worker."""
    registry()
    return list(_usable)


def allow_entry_points(allowed: Container[str]) -> None:
    """Load only these entry points, without a trial, because the parent has tried them."""
    global _allowed
    _allowed = allowed


def unload_plugin(path: Path, stack: str) -> None:
    """Forget the stack of a plugin, which ``load_plugin`` then loads again."""
    _registry.remove(stack)
    _plugins.discard(os.path.realpath(path))


@contextlib.contextmanager
def _importing(package: str = "") -> Iterator[list[list[str]]]:
    """Collect what the block adds to each registry. What it prints goes to standard error, as output may be JSON."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stderr(sys.stderr))
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield [stack.enter_context(one.adding(package)) for one in _REGISTRIES]


def load_entry_point(entry: EntryPoint) -> str:
    """Import the module of an entry point. Why it cannot be used, in one line; '' if it can.

    ``os._exit`` and a crash in native code end this process: only the trial in a child finds them.
    """
    _registry.load()
    imported_before = entry.module in sys.modules
    try:
        with _importing(entry_points.package_of(entry)) as added:
            entry.load()
            if not any(added) and not imported_before:
                return "registers no stack and no workload"
            for name in added[0]:
                environments_of(_registry.items()[name])
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # another package may raise anything
        return one_line(error)
    return ""


def load_plugin(path: Path, *, trial: bool = False) -> dict[str, str]:
    """Import a file that registers stacks or workloads, unless it was imported before.

    ``trial``: import it in a child process first, because a file that calls ``os._exit`` or hangs would end or stop
    this process. Returns, by name, a sentence for each stack or workload of an installed package that the file
    replaces. Raises ``BadPlugin`` with the reason in one line.
    """
    registry()
    if not is_utf8(str(path)):
        raise BadPlugin(f"{path}: the path is not UTF-8; rename it")
    if os.path.realpath(path) in _plugins:
        return {}
    if trial and os.path.isfile(path) and (reason := entry_points.trial(str(path))):
        raise BadPlugin(f"{path}: {reason}")
    spec = importlib.util.spec_from_file_location(f"overhead_plugin_{path.stem}", path)
    if spec is None or spec.loader is None or not os.path.isfile(path):
        raise BadPlugin(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    packages = [dict(one.packages) for one in _REGISTRIES]
    try:
        with _importing() as added:
            spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise BadPlugin(f"{path}: {one_line(error)}") from error
    if not any(added):
        raise BadPlugin(f"{path}: registers no stack and no workload")
    _plugins.add(os.path.realpath(path))
    return {
        name: f"{path} replaces the {one.kind} {name} of the installed package {before[name]}"
        for one, before, names in zip(_REGISTRIES, packages, added, strict=True)
        for name in names
        if name in before
    }
