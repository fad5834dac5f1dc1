"""The registry of stacks. Each stack is one file with ``@register``; other packages and ``--plugin`` files add more."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

from overhead.errors import BadPlugin
from overhead.probes.base import Probe
from overhead.registry import Registry
from overhead.workloads import workloads

_registry: Registry[Probe] = Registry("stack", __name__, frozenset({"base"}))
_plugins: set[Path] = set()


def register(cls: type[Probe]) -> type[Probe]:
    """Class decorator: register the probe by its name. Raises ``UsageError`` if another probe has the name."""
    cls.check_attributes()
    _registry.add(cls.name, cls(), cls.__qualname__)
    return cls


def registry() -> dict[str, Probe]:
    """All stacks, sorted by name: the built-in ones, and those of the entry point group ``overhead.probes``."""
    if _registry.load():
        for entry in importlib.metadata.entry_points(group="overhead.probes"):
            try:
                entry.load()
            except Exception as error:  # another package may raise anything
                raise BadPlugin(f"entry point {entry.name} = {entry.value}: {type(error).__name__}: {error}") from error
    return _registry.items()


def load_plugin(path: Path) -> None:
    """Import a file that registers stacks or workloads, unless it was imported before.

    Raises ``BadPlugin`` with the reason in one line.
    """
    before = {*registry(), *workloads()}
    if path.resolve() in _plugins:
        return
    spec = importlib.util.spec_from_file_location(f"overhead_plugin_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise BadPlugin(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise BadPlugin(f"{path}: {type(error).__name__}: {' '.join(str(error).split())}") from error
    if {*registry(), *workloads()} == before:
        raise BadPlugin(f"{path}: registers no stack and no workload")
    _plugins.add(path.resolve())
