"""Workloads: one file each, registering itself by ``@register``; anyone's own the same way, from a plugin file."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Iterable

from overhead.errors import UsageError
from overhead.workloads.base import Workload

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_NOT_WORKLOADS = {"base", "sources", "equivalence"}
UNROLLED = "recurrence-unrolled"
"""A workload's name for the loop of all its steps, compiled as one function: minutes, so only by name."""
RESERVED = {"step", "mlp-train", "mlp-forward", UNROLLED}
"""Names of what stacks run without a workload of this package's kind."""
_workloads: dict[str, Workload] = {}


def register(cls: type[Workload]) -> type[Workload]:
    """Class decorator: make the workload known by its name. A name is taken once."""
    if not _NAME.fullmatch(cls.name) or cls.name in RESERVED:
        raise UsageError(f"{cls.name!r} is no workload name: {_NAME.pattern}, none of {', '.join(sorted(RESERVED))}")
    if cls.name in _workloads and type(_workloads[cls.name]).__qualname__ != cls.__qualname__:
        raise UsageError(f"the workload name {cls.name!r} is taken")
    _workloads[cls.name] = cls()
    return cls


def workloads() -> dict[str, Workload]:
    """All workloads by name."""
    _load()
    return _workloads


def unrolled_of(name: str) -> str:
    """The workload whose loop it is."""
    return name.removesuffix("-unrolled")


def named(names: Iterable[str]) -> frozenset[str]:
    """Those of the names that are workloads of this package's kind."""
    return frozenset(names) & frozenset(workloads())


@functools.cache
def _load() -> None:
    for module in pkgutil.iter_modules(__path__):
        if module.name not in _NOT_WORKLOADS and not module.name.startswith("_"):
            importlib.import_module(f"{__name__}.{module.name}")
