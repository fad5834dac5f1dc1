"""The registry of workloads. Each workload is one file with ``@register``; plugin files can add more."""

from __future__ import annotations

from collections.abc import Iterable

from overhead.decode.decoders import DECODERS
from overhead.errors import UsageError
from overhead.registry import Registry, owner_of
from overhead.workloads.base import Workload

UNROLLED = "recurrence-unrolled"
"""A loop of all steps of ``recurrence``, compiled as one function. It takes minutes, so it runs only if named."""
OPERATIONS = "operations"
"""Common operations of a library, one case each. They are many, so they run only if named."""
RESERVED = {"step", "mlp-train", "mlp-forward", UNROLLED, OPERATIONS, *DECODERS}
"""Names that stacks use for their own work. No workload may have one of them."""
WORKLOADS: Registry[Workload] = Registry("workload", __name__, frozenset({"base", "sources", "equivalence"}))


def register(cls: type[Workload]) -> type[Workload]:
    """Class decorator: register the workload by its name. Raises ``UsageError`` if the name is reserved or in use."""
    if cls.name in RESERVED:
        raise UsageError(f"the workload name {cls.name!r} is reserved, as are {', '.join(sorted(RESERVED))}")
    WORKLOADS.add(cls.name, cls(), owner_of(cls))
    return cls


def workloads() -> dict[str, Workload]:
    """All workloads by name."""
    return WORKLOADS.items()


def named(names: Iterable[str]) -> frozenset[str]:
    """The names among these that are registered workloads."""
    return frozenset(names) & frozenset(workloads())
