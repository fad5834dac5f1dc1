"""Workloads: one file each, registered by ``@register``. Others come from plugin files in the same way."""

from __future__ import annotations

from collections.abc import Iterable

from overhead.errors import UsageError
from overhead.registry import Registry
from overhead.workloads.base import Workload

UNROLLED = "recurrence-unrolled"
"""The loop of all steps of ``recurrence``, compiled as one function. It takes minutes, so it runs only when named."""
RESERVED = {"step", "mlp-train", "mlp-forward", UNROLLED}
"""Names of other things that stacks run. No workload may have them."""
_registry: Registry[Workload] = Registry("workload", __name__, frozenset({"base", "sources", "equivalence"}))


def register(cls: type[Workload]) -> type[Workload]:
    """Class decorator: register the workload by its name. Raises ``UsageError`` if the name is taken or reserved."""
    if cls.name in RESERVED:
        raise UsageError(f"the workload name {cls.name!r} is reserved, as are {', '.join(sorted(RESERVED))}")
    _registry.add(cls.name, cls(), cls.__qualname__)
    return cls


def workloads() -> dict[str, Workload]:
    """All workloads by name."""
    return _registry.items()


def unrolled_of(name: str) -> str:
    """The name of the workload whose unrolled loop has this name."""
    return name.removesuffix("-unrolled")


def named(names: Iterable[str]) -> frozenset[str]:
    """Those of the names that are registered workloads."""
    return frozenset(names) & frozenset(workloads())
