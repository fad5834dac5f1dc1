"""Workloads: one file each, registering itself by ``@register``; anyone's own the same way, from a plugin file."""

from __future__ import annotations

from collections.abc import Iterable

from overhead.errors import UsageError
from overhead.registry import Registry
from overhead.workloads.base import Workload

UNROLLED = "recurrence-unrolled"
"""A workload's name for the loop of all its steps, compiled as one function: minutes, so only by name."""
RESERVED = {"step", "mlp-train", "mlp-forward", UNROLLED}
"""Names of what stacks run without a workload of this package's kind."""
_registry: Registry[Workload] = Registry("workload", __name__, frozenset({"base", "sources", "equivalence"}))


def register(cls: type[Workload]) -> type[Workload]:
    """Class decorator: make the workload known by its name. A name is taken once."""
    if cls.name in RESERVED:
        raise UsageError(f"the workload name {cls.name!r} is reserved, as are {', '.join(sorted(RESERVED))}")
    _registry.add(cls.name, cls(), cls.__qualname__)
    return cls


def workloads() -> dict[str, Workload]:
    """All workloads by name."""
    return _registry.items()


def unrolled_of(name: str) -> str:
    """The workload whose loop it is."""
    return name.removesuffix("-unrolled")


def named(names: Iterable[str]) -> frozenset[str]:
    """Those of the names that are workloads of this package's kind."""
    return frozenset(names) & frozenset(workloads())
