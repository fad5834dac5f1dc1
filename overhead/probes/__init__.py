"""The stacks: one file each, registering itself by ``@register``; anyone's own through entry points or ``--plugin``."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pkgutil
import re
from pathlib import Path

from overhead.errors import UsageError
from overhead.probes.base import Probe
from overhead.workloads import workloads

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_NOT_STACKS = {"base", "native", "kernels", "browser"}
_probes: dict[str, Probe] = {}
_loaded = False
_plugins: set[Path] = set()


class BadPlugin(UsageError):
    """A plugin that cannot be used; one line."""


def register(cls: type[Probe]) -> type[Probe]:
    """Class decorator: make the probe known by its name. A name is taken once."""
    if not _NAME.fullmatch(cls.name):
        raise BadPlugin(f"{cls.name!r} is no stack name: {_NAME.pattern}")
    if cls.name in _probes and type(_probes[cls.name]).__qualname__ != cls.__qualname__:
        raise BadPlugin(f"the stack name {cls.name!r} is taken")
    _probes[cls.name] = cls()
    return cls


def registry() -> dict[str, Probe]:
    """All stacks in the order of their names: ours, and those of entry points of the group ``overhead.probes``."""
    global _loaded
    if not _loaded:
        _loaded = True
        for module in pkgutil.iter_modules(__path__):
            if not module.ispkg and module.name not in _NOT_STACKS and not module.name.startswith("_"):
                importlib.import_module(f"{__name__}.{module.name}")
        for entry in importlib.metadata.entry_points(group="overhead.probes"):
            try:
                entry.load()
            except Exception as error:  # somebody else's package must not take ours down
                raise BadPlugin(f"entry point {entry.name} = {entry.value}: {type(error).__name__}: {error}") from error
    return dict(sorted(_probes.items()))


def load_plugin(path: Path) -> None:
    """Import a file of stacks or workloads by path, once. Raises ``BadPlugin``: one line that says what is wrong."""
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
